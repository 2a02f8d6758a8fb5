import { describe, expect, test } from 'vitest'
import { opening, response } from '../../../test/sample-events.ts'
import { plain, postsAfterApproval, realChat, refusedChunk } from '../../../test/real-chat.ts'
import { isEphemeralEvent, type ThreadEvent } from '../../events/event.ts'
import { threadFromEvents } from '../../events/event-to-thread.ts'
import { validateThread } from '../../document/validate.ts'
import { UIStreamEncoder, type UIStreamEncoderOptions } from './encode-events.ts'
import { agentUIStream, uiAnswers } from './agent-stream.ts'
import { UIMessageAssembler } from './assemble.ts'
import { toUIMessages } from './to-ui-messages.ts'
import type { UIMessage, UIMessageChunk } from './types.ts'

function encode(
  events: readonly ThreadEvent[],
  options?: UIStreamEncoderOptions,
): UIMessageChunk[] {
  const encoder = new UIStreamEncoder(options)
  return [...events.flatMap((event) => encoder.push(event)), ...encoder.end()]
}

describe('live events as a UI message stream', () => {
  const events = [...opening, ...response]
  const thread = threadFromEvents(events).value
  const stored = plain(toUIMessages(thread))

  test('the sample is a valid thread', () => {
    expect(validateThread(thread).issues.filter((issue) => issue.severity === 'error')).toEqual([])
  })

  test('every chunk passes the real schema', async () => {
    expect(await refusedChunk(encode(events))).toBeUndefined()
  })

  test('the real chat ends in the state of the stored thread', async () => {
    const end = await realChat(stored.slice(0, 1), encode(events))
    expect(end.error).toBeUndefined()
    expect(end.messages).toEqual(stored)
    expect(end.finish).toMatchObject({ finishReason: 'stop' })
  })

  test('words that were not streamed give the same state', async () => {
    const durable = events.filter((event) => !isEphemeralEvent(event))
    const end = await realChat(stored.slice(0, 1), encode(durable))
    expect(end.messages).toEqual(stored)
  })

  test('TP-42 text and reasoning of one block id are two blocks', () => {
    const at = '2026-05-01T13:00:00Z'
    const base = { at, turnId: 'r1', messageId: 'm1', blockId: '0' }
    const chunks = encode([
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

  test('a message that differs from what was streamed replaces it', async () => {
    const other = events.map((event): ThreadEvent =>
      event.type === 'text_delta' && event.text === 'look.' ? { ...event, text: 'listen.' } : event,
    )
    const end = await realChat(stored.slice(0, 1), encode(other))
    expect(end.messages).toEqual(stored)
  })

  test('an approval parks the response; the continuation keeps the message and closes the call', async () => {
    const at = '2026-05-01T13:00:00Z'
    const call = { toolCallId: 'k1', toolName: 'remove', arguments: { path: '/b' } }
    const parked: ThreadEvent[] = [
      { type: 'turn_start', at, turnId: 'p1', agentId: 'guide/a' },
      {
        type: 'message_added',
        at,
        turnId: 'p1',
        message: { id: 'pm', type: 'assistant', content: [], toolCalls: [call], timestamp: at },
      },
      {
        type: 'interrupt_opened',
        at,
        turnId: 'p1',
        interrupt: { id: 'ok?', toolCallId: 'k1', kind: 'approval' },
      },
      { type: 'turn_end', at, turnId: 'p1', outcome: 'parked' },
    ]
    const first = await realChat(stored.slice(0, 1), encode([...opening, ...parked]))
    expect(first.messages.at(-1)).toMatchObject({
      id: 'p1',
      parts: [{ type: 'step-start' }, { state: 'approval-requested', approval: { id: 'ok?' } }],
    })
    expect(first.finish).toMatchObject({ finishReason: 'tool-calls' })

    const answered = plain(first.messages) as { parts: { state?: string; approval?: object }[] }[]
    Object.assign(answered.at(-1)!.parts[1]!, {
      state: 'approval-responded',
      approval: { id: 'ok?', approved: true },
    })
    const resumed: ThreadEvent[] = [
      { type: 'interrupt_answered', at, interruptId: 'ok?', answer: { type: 'approve' } },
      { type: 'turn_start', at, turnId: 'p2', agentId: 'guide/a', continues: 'p1' },
      {
        type: 'tool_execution_end',
        at,
        turnId: 'p2',
        toolCallId: 'k1',
        toolName: 'remove',
        outcome: 'success',
        result: 'gone',
      },
      {
        type: 'message_added',
        at,
        turnId: 'p2',
        message: {
          id: 'pn',
          type: 'assistant',
          content: [{ type: 'text', text: 'Done.' }],
          timestamp: at,
        },
      },
      { type: 'turn_end', at, turnId: 'p2', outcome: 'completed' },
    ]
    const second = await realChat(answered, encode([...opening, ...resumed]))
    expect(second.messages).toHaveLength(2)
    expect(second.messages.at(-1)).toMatchObject({
      id: 'p1',
      parts: [
        { type: 'step-start' },
        { state: 'output-available', output: 'gone', approval: { approved: true } },
        { type: 'step-start' },
        { type: 'text', text: 'Done.', state: 'done' },
      ],
    })
  })

  test('a continuation without the outcome of an answered call does not make the real chat post for ever', async () => {
    const at = '2026-05-01T13:00:00Z'
    const call = { toolCallId: 'k1', toolName: 'remove', arguments: { path: '/b' } }
    const asked: ThreadEvent[] = [
      { type: 'turn_start', at, turnId: 'p1', agentId: 'guide/a' },
      {
        type: 'message_added',
        at,
        turnId: 'p1',
        message: { id: 'pm', type: 'assistant', content: [], toolCalls: [call], timestamp: at },
      },
      {
        type: 'interrupt_opened',
        at,
        turnId: 'p1',
        interrupt: { id: 'ok?', toolCallId: 'k1', kind: 'approval' },
      },
      { type: 'turn_end', at, turnId: 'p1', outcome: 'parked' },
    ]
    const { messages } = await realChat(stored.slice(0, 1), encode([...opening, ...asked]))
    // Parked again before the call ran, once with the log of the first part and once without it.
    const again: ThreadEvent[] = [
      { type: 'interrupt_answered', at, interruptId: 'ok?', answer: { type: 'approve' } },
      { type: 'turn_start', at, turnId: 'p2', agentId: 'guide/a', continues: 'p1' },
      { type: 'turn_end', at, turnId: 'p2', outcome: 'parked' },
    ]
    const continuations = [
      encode([...opening, ...again], { messageId: 'p1', answered: ['k1'] }),
      [{ type: 'start', messageId: 'p1' }, ...encode([...opening, ...asked, ...again]).slice(-3)],
    ]
    for (const chunks of continuations) {
      expect(await refusedChunk(chunks)).toBeUndefined()
      const end = await postsAfterApproval(messages, chunks, 'ok?')
      expect(end.posts).toBe(1)
      expect(JSON.stringify(end.messages)).toContain('has no result yet')
      expect(JSON.stringify(end.messages)).not.toContain('approval-responded')
    }
  })

  test('an answered call stays open while another call waits', () => {
    const at = '2026-05-01T13:00:00Z'
    const toolCalls = ['k1', 'k2'].map((toolCallId) => ({
      toolCallId,
      toolName: 'remove',
      arguments: {},
    }))
    const chunks = encode([
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

  test('a failed turn puts the real chat into its error state', async () => {
    const at = '2026-05-01T13:00:00Z'
    const failed: ThreadEvent[] = [
      { type: 'turn_start', at, turnId: 'f1', agentId: 'guide/a' },
      { type: 'text_delta', at, turnId: 'f1', blockId: 'b', text: 'I was sa' },
      {
        type: 'turn_end',
        at,
        turnId: 'f1',
        outcome: 'failed',
        reason: 'The model is unavailable.',
      },
    ]
    const chunks = encode([...opening, ...failed])
    expect(await refusedChunk(chunks)).toBeUndefined()
    const end = await realChat(stored.slice(0, 1), chunks)
    expect(end.status).toBe('error')
    expect(end.error).toBe('The model is unavailable.')
    expect(end.messages.at(-1)).toMatchObject({ parts: [{}, { text: 'I was sa', state: 'done' }] })
  })

  test('a stop ends with interrupted, which keeps the client from sending by itself', () => {
    const at = '2026-05-01T13:00:00Z'
    const chunks = encode([
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
  const [error] = encode([
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
