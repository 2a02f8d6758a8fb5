import { describe, expect, test } from 'vitest'
import { encodeAll } from '../../../test/encode-all.ts'
import { plain } from '../../../test/plain.ts'
import { postsAfterApproval, realChat, refusedChunk } from '../../../test/real-chat.ts'
import { opening, response } from '../../../test/sample-events.ts'
import { isEphemeralEvent, type ThreadEvent } from '../../events/event.ts'
import { threadFromEvents } from '../../events/event-to-thread.ts'
import { toUIMessages } from './to-ui-messages.ts'

describe('live events as a UI message stream, read by the real chat', () => {
  const events = [...opening, ...response]
  const stored = plain(toUIMessages(threadFromEvents(events).value))

  test('every chunk passes the real schema', async () => {
    expect(await refusedChunk(encodeAll(events))).toBeUndefined()
  })

  test('the real chat ends in the state of the stored thread', async () => {
    const end = await realChat(stored.slice(0, 1), encodeAll(events))
    expect(end.error).toBeUndefined()
    expect(end.messages).toEqual(stored)
    expect(end.finish).toMatchObject({ finishReason: 'stop' })
  })

  test('words that were not streamed give the same state', async () => {
    const durable = events.filter((event) => !isEphemeralEvent(event))
    const end = await realChat(stored.slice(0, 1), encodeAll(durable))
    expect(end.messages).toEqual(stored)
  })

  test('a message that differs from what was streamed replaces it', async () => {
    const other = events.map((event): ThreadEvent =>
      event.type === 'text_delta' && event.text === 'look.' ? { ...event, text: 'listen.' } : event,
    )
    const end = await realChat(stored.slice(0, 1), encodeAll(other))
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
    const first = await realChat(stored.slice(0, 1), encodeAll([...opening, ...parked]))
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
    const second = await realChat(answered, encodeAll([...opening, ...resumed]))
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
    const { messages } = await realChat(stored.slice(0, 1), encodeAll([...opening, ...asked]))
    // Parked again before the call ran, once with the log of the first part and once without it.
    const again: ThreadEvent[] = [
      { type: 'interrupt_answered', at, interruptId: 'ok?', answer: { type: 'approve' } },
      { type: 'turn_start', at, turnId: 'p2', agentId: 'guide/a', continues: 'p1' },
      { type: 'turn_end', at, turnId: 'p2', outcome: 'parked' },
    ]
    const continuations = [
      encodeAll([...opening, ...again], { messageId: 'p1', answered: ['k1'] }),
      [
        { type: 'start', messageId: 'p1' },
        ...encodeAll([...opening, ...asked, ...again]).slice(-3),
      ],
    ]
    for (const chunks of continuations) {
      expect(await refusedChunk(chunks)).toBeUndefined()
      const end = await postsAfterApproval(messages, chunks, 'ok?')
      expect(end.posts).toBe(1)
      expect(JSON.stringify(end.messages)).toContain('has no result yet')
      expect(JSON.stringify(end.messages)).not.toContain('approval-responded')
    }
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
    const chunks = encodeAll([...opening, ...failed])
    expect(await refusedChunk(chunks)).toBeUndefined()
    const end = await realChat(stored.slice(0, 1), chunks)
    expect(end.status).toBe('error')
    expect(end.error).toBe('The model is unavailable.')
    expect(end.messages.at(-1)).toMatchObject({ parts: [{}, { text: 'I was sa', state: 'done' }] })
  })
})
