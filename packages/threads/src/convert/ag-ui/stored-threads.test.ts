import fc from 'fast-check'
import { afterEach, expect, test, vi } from 'vitest'
import { arbitraryThread } from '../../../test/arbitrary-thread.ts'
import {
  agentTurn,
  answer,
  call,
  request,
  response,
  text,
  thread,
  userTurn,
} from '../../../test/samples.ts'
import { encodeUIMessage } from '../ai-sdk/encode-ui-message.ts'
import { toUIMessages, type UIMessage } from '../ai-sdk/index.ts'
import { type AgUiMessage, AgUiStreamEncoder, toAgUiEvents, toAgUiMessages } from './index.ts'

afterEach(() => {
  vi.unstubAllEnvs()
  vi.restoreAllMocks()
})

test('a time without a zone is UTC, whatever the zone of the server', () => {
  vi.stubEnv('TZ', 'Asia/Tokyo')
  expect(Date.parse('2026-03-01T09:00:00')).toBe(Date.parse('2026-03-01T00:00:00Z'))
  const sent = (submitted_at: string) => {
    const said = { ...userTurn('Hello'), submitted_at }
    const answered = agentTurn('ada', [
      { ...response('ada', 1, text('Hi')), timestamp: submitted_at },
    ])
    return toAgUiEvents(thread([said, answered]))
  }
  const utc = sent('2026-03-01T09:00:00.123Z')
  for (const same of ['2026-03-01T09:00:00.123', '2026-03-01T18:00:00.123456+09:00']) {
    const { value, lost } = sent(same)
    expect(value).toEqual(utc.value)
    expect(lost).toContainEqual({
      pointer: '/turns/0/submitted_at',
      reason: 'AG-UI keeps milliseconds in UTC',
    })
  }
  expect(utc.value.map(({ timestamp }) => timestamp)).toContain(Date.UTC(2026, 2, 1, 9, 0, 0, 123))
  expect(sent('March').lost.map(({ reason }) => reason)).toContain('not a time that AG-UI can hold')
})

test('the messages of a chat are copied once, however long it is', () => {
  const turns = Array.from({ length: 50 }, (_, index) => [
    userTurn('Hello'),
    agentTurn('ada', [
      response('ada', 1, text('I look.'), call(`c${index}`)),
      request('ada', 2, answer(`c${index}`)),
      response('ada', 3, text('Done.')),
    ]),
  ])
  const chat = toUIMessages(thread(turns.flat()))
  let copied = 0
  const clone = structuredClone
  vi.spyOn(globalThis, 'structuredClone').mockImplementation((value: unknown) => {
    copied += Array.isArray(value) ? value.length : 1
    return clone(value)
  })
  const { messages } = toAgUiMessages(chat)
  expect(messages.length).toBeGreaterThanOrEqual(4 * 50)
  expect(copied).toBeLessThanOrEqual(messages.length)
})

/** What a client has after it read the stream of each message with the messages that it had before. */
function readOneByOne(chat: readonly UIMessage[]): readonly AgUiMessage[] {
  let messages: readonly AgUiMessage[] = []
  for (const message of chat) {
    if (message.role !== 'assistant') {
      messages = [...messages, ...toAgUiMessages([message]).messages]
      continue
    }
    const run = new AgUiStreamEncoder({ threadId: '', runId: message.id, messages })
    for (const chunk of encodeUIMessage(message)) if (chunk.type !== 'finish') run.push(chunk)
    ;({ messages } = run)
  }
  return messages
}

test('the messages of a chat are those that its streams make, one after the other', () => {
  fc.assert(
    fc.property(arbitraryThread, (sample) => {
      const chat = toUIMessages(sample)
      // The same ids and calls again, with other words and results.
      const other = JSON.parse(JSON.stringify(chat), (key, value: unknown) =>
        key === 'text' || key === 'output' ? `other ${JSON.stringify(value)}` : value,
      ) as UIMessage[]
      for (const list of [chat, [...chat, ...other]])
        expect(toAgUiMessages(list).messages).toEqual(readOneByOne(list))
    }),
    { seed: 4, numRuns: process.env['SKEIN_DEEP'] ? 1_000 : 60 },
  )
})

test('what a person said during a run is there once, as it was sent first', () => {
  const parts = [{ type: 'text', text: 'And faster' }] as const
  const chat: UIMessage[] = [
    { id: 'u1', role: 'user', parts: [{ type: 'text', text: 'Look' }] },
    { id: 'u2', role: 'user', parts: [{ type: 'text', text: 'Faster' }] },
    {
      id: 'a1',
      role: 'assistant',
      parts: [{ type: 'steering-message', id: 'u2', parts: [...parts] }],
    },
  ]
  const { messages } = toAgUiMessages(chat)
  expect(messages.map(({ id, content }) => [id, content])).toEqual([
    ['u1', 'Look'],
    ['u2', 'Faster'],
  ])
  expect(messages).toEqual(readOneByOne(chat))
})
