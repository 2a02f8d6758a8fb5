import { manualClock, sequentialIds } from '@skein/base'
import fc from 'fast-check'
import { describe, expect, test } from 'vitest'
import type { StreamEvent } from '../contract/event.ts'
import { MessageFold } from './fold-message.ts'
import { messageEvents } from './message-events.ts'
import { AssistantMessage } from '../contract/message.ts'
import type { AssistantContent } from '../contract/content.ts'
import { zeroUsage } from '../contract/turn.ts'

const start: StreamEvent = { type: 'message_start', index: 0, delta: {} }
const stop: StreamEvent = {
  type: 'message_stop',
  index: 0,
  delta: { stopReason: 'end_turn', usage: zeroUsage },
}
const open = (index: number, block: 'text' | 'reasoning' | 'image' | 'audio'): StreamEvent => ({
  type: 'content_block_start',
  index,
  delta: { block },
})
const close = (index: number, metadata?: Record<string, { x: number }>): StreamEvent => ({
  type: 'content_block_stop',
  index,
  delta: metadata ? { metadata } : {},
})
const text = (index: number, piece: string): StreamEvent => ({
  type: 'text_delta',
  index,
  delta: { text: piece },
})

function fold(...events: StreamEvent[]): AssistantMessage {
  const folding = new MessageFold()
  folding.push(events)
  return folding.message({ ids: sequentialIds('m'), clock: manualClock() })
}

test('blocks may interleave; they keep the order of their indexes', () => {
  const message = fold(
    start,
    open(0, 'reasoning'),
    open(1, 'text'),
    text(1, 'an'),
    { type: 'reasoning_delta', index: 0, delta: { text: 'hm' } },
    text(1, 'swer'),
    close(1),
    close(0),
    stop,
  )
  expect(message.content).toEqual([
    { type: 'reasoning', text: 'hm' },
    { type: 'text', text: 'answer' },
  ])
})

test('metadata of blocks, calls and the message is kept', () => {
  const message = fold(
    start,
    open(0, 'text'),
    text(0, 'x'),
    close(0, { v: { x: 1 } }),
    {
      type: 'content_block_start',
      index: 1,
      delta: { block: 'tool_call', toolCallId: 'c', toolName: 't' },
    },
    close(1, { v: { x: 2 } }),
    { type: 'content_block_start', index: 2, delta: { block: 'native', name: 'server_tool_use' } },
    close(2, { v: { x: 3 } }),
    {
      type: 'message_stop',
      index: 0,
      delta: { stopReason: 'tool_use', usage: zeroUsage, metadata: { v: { x: 4 } } },
    },
  )
  expect(message.content).toEqual([
    { type: 'text', text: 'x', metadata: { v: { x: 1 } } },
    { type: 'native', name: 'server_tool_use', metadata: { v: { x: 3 } } },
  ])
  expect(message.toolCalls).toEqual([
    { toolCallId: 'c', toolName: 't', arguments: {}, metadata: { v: { x: 2 } } },
  ])
  expect(message.metadata).toEqual({ v: { x: 4 } })
})

test('media pieces are joined, previews are left out, an address stays an address', () => {
  const piece = (index: number, bytes: number[], isPartial = false): StreamEvent => ({
    type: index === 0 ? 'audio_delta' : 'image_delta',
    index,
    delta: { data: new Uint8Array(bytes), mimeType: 'a/b', ...(isPartial && { isPartial }) },
  })
  const message = fold(
    start,
    open(0, 'audio'),
    piece(0, [1, 2]),
    piece(0, [3]),
    close(0),
    open(1, 'image'),
    piece(1, [9], true),
    piece(1, [4]),
    close(1),
    open(2, 'image'),
    {
      type: 'image_delta',
      index: 2,
      delta: { data: new Uint8Array(), mimeType: 'image/png', url: 'https://x/y.png' },
    },
    close(2),
    open(3, 'image'),
    piece(3, [9], true),
    close(3),
    stop,
  )
  expect(message.content).toEqual([
    { type: 'audio', data: new Uint8Array([1, 2, 3]), mimeType: 'a/b' },
    { type: 'image', source: { type: 'bytes', data: new Uint8Array([4]) }, mimeType: 'a/b' },
    { type: 'image', source: { type: 'url', url: 'https://x/y.png' }, mimeType: 'image/png' },
  ])
})

test('a block that says nothing is left out, unless the vendor keeps something in it', () => {
  const message = fold(
    start,
    open(0, 'text'),
    close(0),
    open(1, 'reasoning'),
    close(1, { v: { x: 1 } }),
    stop,
  )
  expect(message.content).toEqual([{ type: 'reasoning', text: '', metadata: { v: { x: 1 } } }])
})

test('a provider that skips block starts still gets its blocks', () => {
  const message = fold(
    start,
    text(0, 'a'),
    {
      type: 'tool_call_delta',
      index: 1,
      delta: { toolCallId: 'c', toolName: 't', argumentsJson: '{"a":1}' },
    },
    stop,
  )
  expect(message.text).toBe('a')
  expect(message.toolCalls).toEqual([{ toolCallId: 'c', toolName: 't', arguments: { a: 1 } }])
})

describe('arguments', () => {
  const callWith = (pieces: string[], end: StreamEvent[] = [close(0), stop]): AssistantMessage =>
    fold(
      start,
      {
        type: 'content_block_start',
        index: 0,
        delta: { block: 'tool_call', toolCallId: 'c', toolName: 't' },
      },
      ...pieces.map((argumentsJson): StreamEvent => ({
        type: 'tool_call_delta',
        index: 0,
        delta: { toolCallId: 'c', toolName: 't', argumentsJson },
      })),
      ...end,
    )

  test('pieces are joined and parsed once', () => {
    expect(callWith(['{"a', '":[1', ',2]}']).toolCalls?.[0]?.arguments).toEqual({ a: [1, 2] })
  })

  test('what is not one complete object is marked, with its text', () => {
    const call = callWith(['{"path":"/tm']).toolCalls?.[0]
    expect(call?.arguments).toEqual({})
    expect(call?.invalidArguments?.text).toBe('{"path":"/tm')
    expect(call?.invalidArguments?.reason).not.toBe('')
  })

  test('a call that was cut off before its arguments is not a call without arguments', () => {
    expect(callWith([], []).toolCalls?.[0]?.invalidArguments).toBeDefined()
    expect(callWith(['']).toolCalls?.[0]?.invalidArguments).toBeUndefined()
  })
})

test('law: how a text is cut into deltas and batches does not show in the message', () => {
  fc.assert(
    fc.property(fc.string({ unit: 'grapheme' }), fc.array(fc.nat(5)), (whole, sizes) => {
      const deltas: StreamEvent[] = []
      for (let at = 0, n = 0; at < whole.length; n++) {
        const size = (sizes[n % (sizes.length || 1)] ?? 0) + 1
        deltas.push(text(0, whole.slice(at, (at += size))))
      }
      const folding = new MessageFold()
      for (const event of [start, open(0, 'text'), ...deltas, close(0), stop]) folding.push([event])
      const message = folding.message({ ids: sequentialIds(), clock: manualClock() })
      expect(message.text).toBe(whole)
    }),
    { seed: 3, numRuns: 200 },
  )
})

test('the events of a message fold into the same content, calls and end', () => {
  const native = { scripted: { api: 'x', native: { a: 1 } } }
  const content: AssistantContent[] = [
    { type: 'reasoning', text: 'Hm.', metadata: native },
    { type: 'text', text: 'Look: ' },
    {
      type: 'image',
      source: { type: 'bytes', data: new Uint8Array([1, 2]) },
      mimeType: 'image/png',
    },
    { type: 'image', source: { type: 'url', url: 'https://x.test/i.png' }, mimeType: 'image/png' },
    { type: 'audio', data: new Uint8Array([3]), mimeType: 'audio/wav' },
    { type: 'native', name: 'server_tool_use', metadata: native },
  ]
  const calls = [
    { toolCallId: 'c1', toolName: 'look', arguments: { city: 'Oslo' }, metadata: native },
    {
      toolCallId: 'c2',
      toolName: 'look',
      arguments: {},
      invalidArguments: { text: '{"ci', reason: 'x' },
    },
  ]
  const message = new AssistantMessage(content, calls, { metadata: native })
  const fold = new MessageFold()
  fold.push(messageEvents(message, { stopReason: 'tool_use', usage: zeroUsage }))
  const again = fold.message({ ids: sequentialIds(), clock: manualClock() })
  expect(again.content).toEqual(message.content)
  expect(again.metadata).toEqual(message.metadata)
  expect(again.toolCalls?.[0]).toEqual(message.toolCalls?.[0])
  expect(again.toolCalls?.[1]?.invalidArguments?.text).toBe('{"ci')
  expect(fold.stop).toMatchObject({ stopReason: 'tool_use', usage: zeroUsage })
})

const callStart = (index: number, toolCallId: string): StreamEvent => ({
  type: 'content_block_start',
  index,
  delta: { block: 'tool_call', toolCallId, toolName: 'look' },
})
const callDelta = (index: number, toolCallId: string, argumentsJson: string): StreamEvent => ({
  type: 'tool_call_delta',
  index,
  delta: { toolCallId, toolName: 'look', argumentsJson },
})

test('calls of a message have different ids, whatever ids the model sends', () => {
  fc.assert(
    fc.property(
      fc.array(fc.constantFrom('', 'same', 'other'), { minLength: 1, maxLength: 6 }),
      fc.boolean(),
      (ids, isAnnounced) => {
        const folding = new MessageFold(sequentialIds('own'))
        const shown = ids.flatMap((id, index) => [
          ...(isAnnounced ? folding.push([callStart(index, id)]) : []),
          ...folding.push([callDelta(index, id, `{"n":`), callDelta(index, id, `${index}}`)]),
        ])
        folding.push([stop])
        const sources = { ids: sequentialIds('m'), clock: manualClock() }
        const calls = folding.message(sources).toolCalls ?? []
        expect(calls.map((call) => call.arguments)).toEqual(ids.map((_, n) => ({ n })))
        const own = calls.map(({ toolCallId }) => toolCallId)
        expect(new Set(own).size).toBe(ids.length)
        expect(own).not.toContain('')
        // The events that a reader of the stream gets have the ids of the message.
        for (const { index, delta } of shown)
          expect((delta as { toolCallId?: string }).toolCallId).toBe(own[index])
        ids.forEach((id, place) => {
          const vendorCallId = calls[place]?.metadata?.['skein']?.['vendorCallId']
          expect(vendorCallId ?? own[place]).toBe(id === '' ? own[place] : id)
        })
      },
    ),
  )
})

test('a message whose calls have ids of their own is not changed', () => {
  const events = [start, callStart(0, 'a'), callDelta(0, 'a', '{}'), callStart(1, 'b'), stop]
  expect(new MessageFold(sequentialIds('own')).push(events)).toBe(events)
})
