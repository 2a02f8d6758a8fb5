import { describe, expect, test } from 'vitest'
import { validateThread } from '@skein/threads'
import {
  decodeUIStream,
  encodeUIMessage,
  UIStreamDecoder,
  type UIMessage,
} from '@skein/threads/ai-sdk'
import { plain } from '../../packages/threads/test/plain.ts'
import { realChat } from '../../packages/threads/test/real-chat.ts'

// Streams as a server may send them; the chat class of the real `ai` package says what they mean.

const question: UIMessage = {
  id: 'q1',
  role: 'user',
  parts: [{ type: 'text', text: 'Which of my parcels are late?' }],
}

function call(toolCallId: string, approval?: object): object {
  const input = { parcel: toolCallId }
  const state = approval ? 'approval-responded' : 'input-available'
  return { type: 'tool-track', toolCallId, state, input, approval }
}

function answered(...parts: object[]): UIMessage[] {
  const answer = { id: 'a1', role: 'assistant', parts: [{ type: 'step-start' }, ...parts] }
  return [question, answer as UIMessage]
}

const streams: readonly (readonly [name: string, before: UIMessage[], chunks: object[]])[] = [
  [
    'reasoning, text, parallel calls of which one fails, a source, data and a second step',
    [question],
    [
      { type: 'start', messageId: 'a1' },
      { type: 'start-step' },
      { type: 'reasoning-start', id: 'r' },
      { type: 'reasoning-delta', id: 'r', delta: 'Two parcels, ' },
      {
        type: 'reasoning-delta',
        id: 'r',
        delta: 'so two calls.',
        providerMetadata: { post: { signature: 'c2ln' } },
      },
      { type: 'reasoning-end', id: 'r' },
      { type: 'text-start', id: 't' },
      { type: 'text-delta', id: 't', delta: 'I will ' },
      { type: 'text-delta', id: 't', delta: 'look. 📦' },
      { type: 'text-end', id: 't' },
      { type: 'tool-input-start', toolCallId: 'p1', toolName: 'track' },
      { type: 'tool-input-delta', toolCallId: 'p1', inputTextDelta: '{"parcel"' },
      { type: 'tool-input-start', toolCallId: 'p2', toolName: 'track' },
      { type: 'tool-input-delta', toolCallId: 'p1', inputTextDelta: ':"p1"}' },
      { type: 'tool-input-delta', toolCallId: 'p2', inputTextDelta: '{"parcel":"p2"}' },
      {
        type: 'tool-input-available',
        toolCallId: 'p1',
        toolName: 'track',
        input: { parcel: 'p1' },
      },
      {
        type: 'tool-input-available',
        toolCallId: 'p2',
        toolName: 'track',
        input: { parcel: 'p2' },
      },
      { type: 'tool-output-available', toolCallId: 'p1', output: { lateDays: 2, note: null } },
      { type: 'source-url', sourceId: 's', url: 'https://example.test/p1', title: 'Track' },
      { type: 'data-progress', id: 'd', data: { done: 1, of: 2 } },
      { type: 'tool-output-error', toolCallId: 'p2', errorText: 'No such parcel.\nTry again.' },
      { type: 'finish-step' },
      { type: 'start-step' },
      { type: 'text-start', id: 't2' },
      { type: 'text-delta', id: 't2', delta: 'One is two days late.' },
      { type: 'text-end', id: 't2' },
      { type: 'message-metadata', messageMetadata: { at: '2026-03-14T09:26:53Z' } },
      { type: 'finish-step' },
      { type: 'finish', finishReason: 'stop' },
    ],
  ],
  [
    'a call that waits for approval',
    [question],
    [
      { type: 'start', messageId: 'a1' },
      { type: 'start-step' },
      {
        type: 'tool-input-available',
        toolCallId: 'p1',
        toolName: 'track',
        input: { parcel: 'p1' },
      },
      { type: 'tool-approval-request', approvalId: 'ask-1', toolCallId: 'p1' },
      { type: 'finish-step' },
      { type: 'finish', finishReason: 'tool-calls' },
    ],
  ],
  [
    'one approval given and one refused',
    answered(
      call('p1', { id: 'ask-1', approved: true }),
      call('p2', { id: 'ask-2', approved: false, reason: 'not this one' }),
    ),
    [
      { type: 'start', messageId: 'a1' },
      { type: 'tool-output-denied', toolCallId: 'p2' },
      { type: 'tool-output-available', toolCallId: 'p1', output: 'on its way' },
      { type: 'start-step' },
      { type: 'text-start', id: 't' },
      { type: 'text-delta', id: 't', delta: 'The first is on its way.' },
      { type: 'text-end', id: 't' },
      { type: 'finish-step' },
      { type: 'finish', finishReason: 'stop' },
    ],
  ],
]

describe.each(streams)('%s', (_name, before, sent) => {
  const text = [...sent.map((chunk) => JSON.stringify(chunk)), '[DONE]']
    .map((data) => `data: ${data}\n\n`)
    .join('')

  test('TP-42 our decoder reaches the state that the real chat reaches', async () => {
    const chunks = decodeUIStream(text)
    const real = await realChat(before, chunks)
    expect(real.error).toBeUndefined()
    expect(real.messages).toHaveLength(2)
    const decoder = new UIStreamDecoder({ messages: before })
    for (const chunk of chunks) decoder.push(chunk)
    expect(plain(decoder.messages)).toEqual(real.messages)
    expect(decoder.isFinished).toBe(true)
    const { value } = decoder.end()
    expect(validateThread(value).issues.filter((issue) => issue.severity === 'error')).toEqual([])
  })

  test('TP-54 the message, encoded anew, brings the real chat to the same state', async () => {
    const real = await realChat(before, decodeUIStream(text))
    const users = real.messages.filter((message) => (message as UIMessage).role === 'user')
    const again = await realChat(users, encodeUIMessage(real.messages.at(-1) as UIMessage))
    expect(again.messages).toEqual(real.messages)
  })
})
