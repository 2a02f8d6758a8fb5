import { describe, expect, test } from 'vitest'
import type { Provider } from '../contract/provider.ts'
import { llm } from '../llm.ts'
import { NoRetry } from '../transport/retry.ts'
import { openaiChat } from '../wires/openai-chat/wire.ts'
import { chatDialect } from '../wires/openai-chat/dialect.ts'
import { anthropic } from './anthropic.ts'
import { defineVendor } from './define-vendor.ts'
import { google } from './google.ts'
import { groq } from './groq.ts'
import { ollama } from './ollama.ts'
import { openai } from './openai.ts'

/** A short answer as each wire streams it. */
const streams: readonly (readonly [provider: Provider, frames: readonly unknown[]])[] = [
  [
    groq,
    [
      { choices: [{ delta: { content: 'Hel' } }] },
      { choices: [{ delta: { content: 'lo' }, finish_reason: 'stop' }] },
      '[DONE]',
    ],
  ],
  [
    openai,
    [
      { type: 'response.output_text.delta', output_index: 0, content_index: 0, delta: 'Hello' },
      { type: 'response.completed', response: { id: 'r', status: 'completed' } },
    ],
  ],
  [
    anthropic,
    [
      { type: 'message_start', message: { id: 'm', content: [], usage: {} } },
      { type: 'content_block_start', index: 0, content_block: { type: 'text', text: '' } },
      { type: 'content_block_delta', index: 0, delta: { type: 'text_delta', text: 'Hello' } },
      { type: 'content_block_stop', index: 0 },
      { type: 'message_delta', delta: { stop_reason: 'end_turn' } },
      { type: 'message_stop' },
    ],
  ],
  [
    google,
    [
      { candidates: [{ content: { parts: [{ text: 'Hel' }] } }] },
      { candidates: [{ content: { parts: [{ text: 'lo' }] }, finishReason: 'STOP' }] },
    ],
  ],
]

const lines = [
  { message: { content: 'Hel' }, done: false },
  { message: { content: 'lo' }, done: true, done_reason: 'stop' },
]

function sse(frames: readonly unknown[]): string {
  return frames
    .map((frame) => `data: ${typeof frame === 'string' ? frame : JSON.stringify(frame)}\n\n`)
    .join('')
}

async function ask(
  provider: Provider,
  body: string,
  { type, streaming }: { type: string; streaming: boolean },
): Promise<string> {
  const fetch = async (): Promise<Response> =>
    new Response(body, { headers: { 'content-type': type } })
  const config = { apiKey: 'key-0123456789', fetch, retryStrategy: new NoRetry() }
  const model = llm({ model: provider('m'), config })
  const turn = await (streaming ? model.stream('Hi').turn : model.generate('Hi'))
  return turn.response.text
}

const sseType = 'text/event-stream; charset=utf-8'

describe.each(streams.map(([provider, frames]) => ({ name: provider.name, provider, frames })))(
  '$name',
  ({ provider, frames }) => {
    test('what follows the end of an answer changes nothing', async () => {
      const body = `${sse(frames)}data: [DONE]\n\n`
      expect(await ask(provider, body, { type: sseType, streaming: true })).toBe('Hello')
    })

    test('frames without data only keep the connection alive', async () => {
      const body = frames.map((frame) => `data:\n\nevent: ping\ndata: \n\n${sse([frame])}`).join('')
      expect(await ask(provider, body, { type: sseType, streaming: true })).toBe('Hello')
    })

    test('a stream that is called JSON is read as the stream it is', async () => {
      for (const before of ['', '\uFEFF', ': hello\n\n', '\r\n']) {
        const body = before + sse(frames)
        expect(await ask(provider, body, { type: 'application/json', streaming: true })).toBe(
          'Hello',
        )
      }
    })

    test('a server that streams unasked is waited for', async () => {
      expect(await ask(provider, sse(frames), { type: sseType, streaming: false })).toBe('Hello')
    })

    test('a stream that breaks off is no answer, asked for or not', async () => {
      const body = sse(frames.slice(0, 1))
      for (const streaming of [true, false])
        for (const type of [sseType, 'application/json'])
          await expect(ask(provider, body, { type, streaming })).rejects.toMatchObject({
            code: 'INVALID_RESPONSE',
          })
    })
  },
)

test('a line stream that is called JSON, or comes unasked, is read line by line', async () => {
  const body = lines.map((line) => JSON.stringify(line)).join('\n')
  expect(await ask(ollama, body, { type: 'application/json', streaming: true })).toBe('Hello')
  expect(await ask(ollama, body, { type: 'application/x-ndjson', streaming: false })).toBe('Hello')
})

test('headers that change from call to call are sent as they are then', async () => {
  const sent: Record<string, string>[] = []
  const fetch = async (_url: unknown, init?: RequestInit): Promise<Response> => {
    sent.push({ ...(init!.headers as Record<string, string>) })
    return Response.json({ choices: [{ message: { content: 'Hi' }, finish_reason: 'stop' }] })
  }
  let count = 0
  const { capabilities } = groq.handlers.llm!
  const vendor = defineVendor({
    name: 'signing',
    baseUrl: 'http://127.0.0.1:1/v1',
    keyVariables: [],
    authHeaders: (key) => ({ authorization: `${key} ${(count += 1)}` }),
    llm: { wire: openaiChat, dialect: chatDialect, capabilities },
  })
  const signed = llm({ model: vendor('m'), config: { apiKey: 'key-0123456789', fetch } })
  for (let i = 0; i < 3; i++) await signed.generate('Hi')
  const signatures = sent.map((headers) => headers['authorization'])
  expect(new Set(signatures).size).toBe(3)

  const keys = ['first-key-01', 'second-key-02', 'second-key-02']
  const rotating = llm({ model: groq('m'), config: { apiKey: () => keys.shift()!, fetch } })
  for (let i = 0; i < 3; i++) await rotating.generate('Hi')
  expect(sent.slice(3).map((headers) => headers['authorization'])).toEqual([
    'Bearer first-key-01',
    'Bearer second-key-02',
    'Bearer second-key-02',
  ])

  const headers: Record<string, string> = { 'x-trace': 'one' }
  const traced = llm({ model: groq('m'), config: { apiKey: 'key-0123456789', fetch, headers } })
  await traced.generate('Hi')
  headers['x-trace'] = 'two'
  await traced.generate('Hi')
  expect(sent.slice(6).map((each) => each['x-trace'])).toEqual(['one', 'two'])

  // The same call, streamed, accepts another type.
  await signed.stream('Hi').turn
  await signed.generate('Hi')
  expect(sent.slice(8).map(({ accept }) => accept)).toEqual([
    'text/event-stream',
    'application/json',
  ])
})
