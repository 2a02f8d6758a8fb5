import { calls, says, scripted } from '@skein/ai/testing'
import { createRuntime, defineAgent, definePrompt, defineTool, memoryStore } from '@skein/runtime'
import { createHttp } from '@skein/server'
import type { StandardJSONSchemaV1, StandardSchemaV1 } from '@skein/base'

/** What happens between the steps of the request, for the printed trace. */
export type Step = (title: string) => void

/** A schema without a library, so that only our own code is traced. */
const order = {
  '~standard': {
    version: 1,
    vendor: 'skein-trace',
    validate: (value: unknown) => ({ value: value as { readonly order: string } }),
    jsonSchema: {
      input: () => ({ type: 'object', properties: { order: { type: 'string' } } }),
      output: () => ({ type: 'object' }),
    },
  },
} satisfies StandardSchemaV1 & StandardJSONSchemaV1

/**
 * One request through the whole product, in process: a message is posted, the model calls a tool that
 * needs approval, a person approves over HTTP, the tool runs, the model answers, and a reader follows.
 * `step` is called where a stretch of it begins; everything before the first call is preparation.
 */
export async function tracedRequest(step: Step): Promise<string> {
  const refund = defineTool({
    name: 'refund',
    description: 'Pays money back.',
    args: order,
    risk: 'write_high_risk',
    rollback: ({ order: number }) => ({
      type: 'tool_call',
      target: 'charge',
      payload: { order: number },
    }),
    execute: (_, { order: number }) => `Refunded ${number}.`,
  })
  const charge = defineTool({
    name: 'charge',
    description: 'Charges again.',
    args: order,
    risk: 'write_low_risk',
    execute: (_, { order: number }) => `Charged ${number}.`,
  })
  const model = scripted(({ messages }) =>
    messages.at(-1)!.type === 'tool_result'
      ? says('It is refunded.')
      : calls('refund', { order: 'O-7' }),
  )
  const prompt = definePrompt({ name: 'refunds', prompt: 'You refund.', model, tools: [refund] })
  const runtime = await createRuntime({
    agents: [defineAgent({ name: 'refunds', sideA: { prompt } })],
    tools: [charge],
    store: memoryStore(),
    // On a busy machine the event loop may be blocked; the report of that is no part of the trace.
    limits: { loopBlockedMs: 60_000 },
  })
  await runtime.start()
  const http = createHttp(runtime, { auth: 'none' })
  const send = async (method: string, path: string, body?: object): Promise<Response> => {
    const response = await http.fetch(
      new Request(`http://127.0.0.1${path}`, {
        method,
        headers: { 'content-type': 'application/json', host: '127.0.0.1' },
        body: body && JSON.stringify(body),
      }),
      { address: '127.0.0.1' },
    )
    if (!response.ok)
      throw new Error(`${method} ${path}: ${response.status} ${await response.text()}`)
    return response
  }
  const created = (await (await send('POST', '/threads', { agent: 'refunds' })).json()) as {
    id: string
  }
  const path = `/threads/${created.id}`

  step('A message is posted')
  await send('POST', `${path}/messages`, { text: 'Please refund O-7.' })
  step('A reader follows the thread until it waits for a person')
  await (await send('GET', `${path}/stream?until=parked`)).text()
  step('A person approves')
  const { waiting } = (await (await send('GET', '/approvals')).json()) as {
    waiting: { interruptId: string }[]
  }
  await send('POST', `/approvals/${created.id}/${waiting[0]!.interruptId}`, { type: 'approve' })
  step('The tool runs and the model answers')
  const rest = await (await send('GET', `${path}/stream?until=parked`)).text()
  step('')
  await runtime.stop()
  return rest
}
