import { afterEach, beforeEach, expect, test } from 'vitest'
import { calls, says, scripted } from '@skein/ai/testing'
import { defineAgent, definePrompt } from '@skein/runtime'
import { startWebhooks } from '../../src/index.ts'
import { startKit, type Kit } from './http-kit.ts'

// A handoff ends a session and begins the next one; whoever waits for the answer waits on.

let kit: Kit
beforeEach(async () => {
  const billing = defineAgent({
    name: 'billing',
    exposeAsTool: true,
    toolDescription: 'Invoices.',
    sideA: {
      prompt: definePrompt({
        name: 'billing',
        prompt: 'Bill.',
        model: scripted(() => says('It is paid.')),
      }),
    },
  })
  const model = scripted(() => [says('One moment.'), calls('billing', {})])
  const prompt = definePrompt({ name: 'front', prompt: 'Help.', model, tools: [billing] })
  const front = defineAgent({ name: 'front', sideA: { prompt } })
  kit = await startKit({ runtime: { agents: [front] } })
})
afterEach(() => kit.stop())

interface A2aTask {
  readonly id: string
  readonly status: { readonly state: string }
  readonly artifacts?: readonly { readonly parts: readonly { readonly text: string }[] }[]
  readonly history: readonly { readonly parts: readonly { readonly text: string }[] }[]
}

const rpc = (method: string, params: object): Promise<Response> =>
  kit.ask(
    'ada',
    'POST',
    '/agents/front/a2a',
    { jsonrpc: '2.0', id: 1, method, params },
    { 'a2a-version': '1.0' },
  )
const message = { messageId: 'm1', role: 'ROLE_USER', parts: [{ text: 'Is it paid?' }] }

test('SA-35 a task of A2A goes on after a handoff, and its artifact is the answer of the new agent', async () => {
  const sent = (await (await rpc('SendMessage', { message })).json()) as {
    readonly result: { readonly task: A2aTask }
  }
  const { task } = sent.result
  expect(task.status.state).toBe('TASK_STATE_COMPLETED')
  expect(task.artifacts?.map(({ parts }) => parts)).toEqual([[{ text: 'It is paid.' }]])
  expect(task.history.map(({ parts }) => parts[0]?.text)).toEqual([
    'Is it paid?',
    'One moment.',
    'It is paid.',
  ])
  const read = (await (await rpc('GetTask', { id: task.id })).json()) as {
    readonly result: A2aTask
  }
  expect(read.result).toEqual(task)
})

test('SA-35 the stream of a task goes on after a handoff', async () => {
  const text = await (await rpc('SendStreamingMessage', { message })).text()
  const results = [...text.matchAll(/^data: (.*)$/gm)].map(
    ([, data]) =>
      (
        JSON.parse(data!) as {
          readonly result: {
            readonly artifactUpdate?: {
              readonly artifact: { readonly parts: readonly object[] }
              readonly lastChunk: boolean
            }
            readonly statusUpdate?: { readonly status: { readonly state: string } }
          }
        }
      ).result,
  )
  const whole = results.flatMap(({ artifactUpdate }) =>
    artifactUpdate?.lastChunk ? [artifactUpdate.artifact.parts] : [],
  )
  expect(whole).toEqual([[{ text: 'It is paid.' }]])
  expect(results.at(-1)?.statusUpdate?.status.state).toBe('TASK_STATE_COMPLETED')
})

test('SA-35 a webhook is told of the end of the session once, with the answer of the new agent', async () => {
  const got: Record<string, unknown>[] = []
  const webhooks = await startWebhooks(kit.runtime, {
    webhooks: [
      {
        url: 'https://hooks.example/in',
        secret: `whsec_${Buffer.alloc(32, 3).toString('base64')}`,
        events: ['session.ended'],
      },
    ],
    post: async ({ body }) => {
      got.push((JSON.parse(body) as { readonly data: Record<string, unknown> }).data)
      return 200
    },
  })
  const { id } = await kit.runtime.threads.create({ agent: 'front' })
  await kit.runtime.threads.run(id, 'Is it paid?')
  const isTold = () => got.some(({ reason }) => reason === 'response')
  for (let i = 0; i < 1000 && !isTold(); i++) await new Promise((done) => setImmediate(done))
  await webhooks.stop()
  expect(got.map(({ outcome, reason, text }) => [outcome, reason, text])).toEqual([
    ['completed', 'response', 'It is paid.'],
  ])
})
