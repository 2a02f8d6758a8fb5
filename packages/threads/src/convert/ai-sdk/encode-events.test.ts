import { describe, expect, test } from 'vitest'
import { encodeAll } from '../../../test/encode-all.ts'
import { plain } from '../../../test/plain.ts'
import { opening, response } from '../../../test/sample-events.ts'
import { validateThread } from '../../document/validate.ts'
import { isEphemeralEvent, type ThreadEvent } from '../../events/event.ts'
import { threadFromEvents } from '../../events/event-to-thread.ts'
import { agentUIStream, uiAnswers } from './agent-stream.ts'
import { UIMessageAssembler } from './assemble.ts'
import { toUIMessages } from './to-ui-messages.ts'
import type { UIMessage } from './types.ts'

describe('live events as a UI message stream', () => {
  const events = [...opening, ...response]
  const thread = threadFromEvents(events).value
  const stored = plain(toUIMessages(thread))

  test('the sample is a valid thread', () => {
    expect(validateThread(thread).issues.filter((issue) => issue.severity === 'error')).toEqual([])
  })

  /** The messages that a page holds after it has read these events. */
  function shown(all: readonly ThreadEvent[]): unknown {
    const assembler = new UIMessageAssembler()
    for (const chunk of encodeAll(all)) assembler.push(chunk)
    return plain([...stored.slice(0, 1), assembler.message])
  }

  test('a page that reads them holds the messages of the stored thread', () => {
    expect(shown(events)).toEqual(stored)
  })

  test('so it does when words were not streamed, or other words', () => {
    expect(shown(events.filter((event) => !isEphemeralEvent(event)))).toEqual(stored)
    const other = events.map((event): ThreadEvent =>
      event.type === 'text_delta' && event.text === 'look.' ? { ...event, text: 'listen.' } : event,
    )
    expect(shown(other)).toEqual(stored)
  })

  test('TP-42 text and reasoning of one block id are two blocks', () => {
    const at = '2026-05-01T13:00:00Z'
    const base = { at, turnId: 'r1', messageId: 'm1', blockId: '0' }
    const chunks = encodeAll([
      { type: 'turn_start', at, turnId: 'r1', agentId: 'guide/a' },
      { type: 'reasoning_delta', ...base, text: 'Hm.' },
      { type: 'text_delta', ...base, text: 'Yes.' },
    ])
    const words = chunks.flatMap((chunk) => ('delta' in chunk ? [[chunk.type, chunk.delta]] : []))
    expect(words).toEqual([
      ['reasoning-delta', 'Hm.'],
      ['text-delta', 'Yes.'],
    ])
    const idsOf = (...types: string[]) =>
      chunks.flatMap((chunk) => ('id' in chunk && types.includes(chunk.type) ? [chunk.id] : []))
    const [thinking, text] = idsOf('reasoning-start', 'text-start')
    expect(text).not.toBe(thinking)
    expect(idsOf('reasoning-delta', 'text-delta')).toEqual([thinking, text])
  })

  test('an answered call stays open while another call waits', () => {
    const at = '2026-05-01T13:00:00Z'
    const toolCalls = ['k1', 'k2'].map((toolCallId) => ({
      toolCallId,
      toolName: 'remove',
      arguments: {},
    }))
    const chunks = encodeAll([
      { type: 'turn_start', at, turnId: 'p1', agentId: 'guide/a' },
      {
        type: 'message_added',
        at,
        turnId: 'p1',
        message: { id: 'pm', type: 'assistant', content: [], toolCalls, timestamp: at },
      },
      ...toolCalls.map(({ toolCallId }): ThreadEvent => ({
        type: 'interrupt_opened',
        at,
        turnId: 'p1',
        interrupt: { id: `${toolCallId}?`, toolCallId, kind: 'approval' },
      })),
      { type: 'interrupt_answered', at, interruptId: 'k2?', answer: { type: 'approve' } },
      { type: 'turn_end', at, turnId: 'p1', outcome: 'parked' },
    ])
    expect(chunks.map(({ type }) => type)).not.toContain('tool-output-error')
    expect(chunks.at(-1)).toEqual({ type: 'finish', finishReason: 'tool-calls' })
  })

  test('a stop ends with interrupted, which keeps the client from sending by itself', () => {
    const at = '2026-05-01T13:00:00Z'
    const chunks = encodeAll([
      { type: 'turn_start', at, turnId: 'f1', agentId: 'guide/a' },
      { type: 'turn_end', at, turnId: 'f1', outcome: 'interrupted' },
    ])
    expect(chunks.at(-1)).toEqual({ type: 'finish', finishReason: 'interrupted' })
  })
})

test.each([
  ['failed', 'failed'],
  ['interrupted', 'interrupted'],
  ['retry', 'retry'],
  ['unknown', 'interrupted'],
] as const)('TP-54 a call that ended as %s ends so in the stream', (outcome, shown) => {
  const at = '2026-05-01T14:00:00Z'
  const [error] = encodeAll([
    { type: 'turn_start', at, turnId: 't', agentId: 'a' },
    {
      type: 'tool_execution_end',
      at,
      turnId: 't',
      toolCallId: 'c',
      toolName: 'f',
      outcome,
      result: 'why',
    },
  ]).filter(({ type }) => type === 'tool-output-error')
  expect(plain(error)).toEqual({
    type: 'tool-output-error',
    toolCallId: 'c',
    errorText: 'why',
    providerMetadata: { threadprotocol: { outcome: shown } },
  })
})

test('TP-49 the blocks of an agent’s answer are in the order of their index', async () => {
  const upp = (type: string, index: number, delta: object = {}) => ({ upp: { type, index, delta } })
  async function* run() {
    yield upp('message_start', 0)
    yield upp('text_delta', 1, { text: 'second' })
    yield upp('text_delta', 0, { text: 'first' })
    yield upp('message_stop', 0, { stopReason: 'end_turn' })
  }
  const stream = agentUIStream(
    Object.assign(run(), { result: Promise.resolve({}), abort: () => undefined }),
    { messageId: 'm' },
  )
  const assembler = new UIMessageAssembler()
  for await (const chunk of stream) assembler.push(chunk)
  const texts = assembler.message.parts.flatMap((part) => (part.type === 'text' ? part.text : []))
  expect(texts).toEqual(['first', 'second'])
  expect(assembler.finishReason).toBe('stop')
})

describe('answers of a page', () => {
  const answersTo = (parts: unknown) =>
    uiAnswers([{ id: 'a', role: 'assistant', parts } as unknown as UIMessage])
  const answered = (approval: unknown, toolCallId: unknown = 'c') => ({
    type: 'tool-pay',
    state: 'approval-responded',
    toolCallId,
    approval,
  })

  test('a yes is exactly true; anything else is a no', () => {
    expect(answersTo([answered({ approved: true })])).toEqual({ c: { type: 'approve' } })
    for (const approved of ['false', 'true', 1, {}, [], null, undefined, false])
      expect(answersTo([answered({ approved })])).toMatchObject({ c: { type: 'deny' } })
    expect(answersTo([answered('yes')])).toMatchObject({ c: { type: 'deny' } })
    expect(answersTo([answered({ approved: false, reason: { toString: 1 } })])).toEqual({
      c: { type: 'deny', reason: 'The person said no.' },
    })
  })

  test('what is no answer is left out, whatever it is', () => {
    for (const id of [null, 5, {}, { toString: 1 }])
      expect(answersTo([answered({ approved: true }, id)])).toEqual({})
    expect(answersTo([null, 'x', 5, [], answered({ approved: true })])).toEqual({
      c: { type: 'approve' },
    })
    for (const parts of [undefined, null, 'x', {}, 5]) expect(answersTo(parts)).toEqual({})
    const odd = answersTo([answered({ approved: true }, '__proto__')])
    expect(Object.keys(odd)).toEqual(['__proto__'])
  })
})
