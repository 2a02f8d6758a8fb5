import { expect, test } from 'vitest'
import { tool } from '@skein/ai'
import { calls, says, scripted } from '@skein/ai/testing'
import { defineAgent, createRuntime, type EmbeddedRuntime, lineLogger } from '@skein/runtime'
import { createHttp } from '../../src/index.ts'

/** A secret of the thread, which the tool puts into its error. */
const CANARY = 'sk-canary-4f1c9a7e2b'

const lookUp = tool({
  name: 'look_up',
  description: 'Fails.',
  parameters: { type: 'object' },
  risk: 'read_only',
  run: function lookUpOrder(): never {
    throw new TypeError(`boom with ${CANARY}`)
  },
})

/** Fails after its first value, as tools of MCP servers do. */
const stream = tool({
  name: 'stream',
  description: 'Fails late.',
  parameters: { type: 'object' },
  risk: 'read_only',
  run: async function* streamOrders() {
    yield 1
    throw new Error('torn')
  },
})

async function failed(lines: string[]): Promise<{ runtime: EmbeddedRuntime; id: string }> {
  const model = scripted([[calls('look_up'), calls('stream')], says('Sorry.')])
  const agent = defineAgent({
    name: 'support',
    instructions: 'Help.',
    model,
    tools: [lookUp, stream],
    variables: [{ name: 'KEY', type: 'secret' }],
  })
  const logger = lineLogger({ format: 'text', write: (line) => lines.push(line) })
  const runtime = await createRuntime({ agents: [agent], logger })
  await runtime.start()
  const { id } = await runtime.threads.create({ agent, secrets: { KEY: CANARY } })
  await runtime.threads.run(id, 'Go')
  return { runtime, id }
}

test('what a tool throws is logged with its stack, without secrets', async () => {
  const lines: string[] = []
  const { runtime } = await failed(lines)
  const [line = '', late = ''] = lines.filter((text) => text.includes('tool failed'))
  expect(line).toMatch(/error: tool failed .*toolName=look_up .* TypeError: boom with/)
  expect(line).toMatch(/\n\s+at .*lookUpOrder.*thrown-tool\.test\.ts/)
  expect(late).toMatch(/toolName=stream .*torn[^]*streamOrders/)
  expect(lines.join('\n')).not.toContain(CANARY)
  await runtime.stop()
})

test('the stack is for operators: not in streams, events, documents, exports or the view of the model', async () => {
  const { runtime, id } = await failed([])
  const failures = await runtime.threads.failures(id)
  expect(failures).toMatchObject([{ toolName: 'look_up' }, { toolName: 'stream', message: 'torn' }])
  expect(failures[0]!.stack).toContain('lookUpOrder')
  expect(JSON.stringify(failures)).not.toContain(CANARY)

  const http = createHttp(runtime, {
    auth: (request) =>
      Promise.resolve({
        tenant: 'default',
        scopes:
          request.headers.get('authorization') === 'Bearer operator'
            ? ['threads:read', 'logs:read']
            : ['threads:read'],
      }),
  })
  const get = async (path: string, key = 'user'): Promise<Response> =>
    http.fetch(
      new Request(`http://127.0.0.1/threads/${id}${path}`, {
        headers: { authorization: `Bearer ${key}`, accept: '*/*' },
      }),
    )
  const shown = [
    await (await get('/events')).text(),
    await (await get('/stream?until=parked')).text(),
    await (await get('/export?format=jsonl')).text(),
    await (await get('/export?format=thread')).text(),
    await (await get('/export?format=html')).text(),
    await (await get('/view')).text(),
    await (await get('/messages')).text(),
    JSON.stringify(await runtime.threads.document(id)),
    JSON.stringify(await runtime.threads.log(id, (await runtime.threads.logs(id)).at(-1)!.logId)),
  ]
  for (const text of shown) {
    expect(text).toContain('boom with') // the message is the result of the call
    expect(text).not.toContain('lookUpOrder')
    expect(text).not.toContain('thrown-tool.test')
    expect(text).not.toContain(CANARY)
  }
  expect((await get('/failures')).status).toBe(403)
  const answer = await get('/failures', 'operator')
  expect(await answer.json()).toEqual({ failures })
  await runtime.stop()
})

test('an error that is no error of the tool is not logged: arguments that do not fit, an unknown tool', async () => {
  const lines: string[] = []
  const strict = tool({
    name: 'strict',
    description: 'Takes a number.',
    parameters: { type: 'object', properties: { n: { type: 'number' } } },
    risk: 'read_only',
    run: () => 'ok',
  })
  const model = scripted([[calls('strict', 'no JSON'), calls('unknown')], says('Done.')])
  const agent = defineAgent({ name: 'a', instructions: '', model, tools: [strict] })
  const logger = lineLogger({ format: 'text', write: (line) => lines.push(line) })
  const runtime = await createRuntime({ agents: [agent], logger })
  await runtime.start()
  const { id } = await runtime.threads.create({ agent })
  await runtime.threads.run(id, 'Go')
  expect(lines.join('\n')).not.toContain('tool failed')
  expect(await runtime.threads.failures(id)).toEqual([])
  await runtime.stop()
})
