import { type JsonValue, sequentialIds, type SseEvent, systemClock } from '@skein/base'
import type { StreamEvent } from '../../src/contract/event.ts'
import { MessageFold } from '../../src/turn/fold-message.ts'
import { type AssistantMessage, UserMessage } from '../../src/contract/message.ts'
import type { LLMRequest } from '../../src/contract/provider.ts'
import type { DecodeContext, Target, Wire } from '../../src/wires/wire.ts'

/** A request with only what a test is about. */
export function requestOf(fields: Partial<LLMRequest> = {}): LLMRequest {
  return {
    messages: [new UserMessage('Hi')],
    params: {},
    tools: [],
    config: {},
    signal: new AbortController().signal,
    clock: systemClock,
    ids: sequentialIds('id'),
    ...fields,
  }
}

/** The context of an answer to a request; with `wire`, of one that the wire has encoded. */
export function contextOf<D>(
  target: Target<D>,
  request: LLMRequest = requestOf(),
  wire?: Wire<D>,
): DecodeContext<D> {
  const unwrap = wire?.encodeRequest(request, target, 'stream').unwrap
  return { target, request, warnings: [], unwrap }
}

export function frame(data: JsonValue | string, event = ''): SseEvent {
  return { event, data: typeof data === 'string' ? data : JSON.stringify(data), id: '' }
}

/** Decodes a stream to its end. */
export function decodeStream<D>(
  wire: Wire<D>,
  frames: readonly (JsonValue | string)[],
  context: DecodeContext<D>,
): StreamEvent[] {
  const decoder = wire.createDecoder(context)
  const events = frames.flatMap((data) => decoder.push(frame(data)))
  events.push(...decoder.end())
  return events
}

export interface Folded {
  readonly content: AssistantMessage['content']
  readonly toolCalls: AssistantMessage['toolCalls']
  readonly metadata: AssistantMessage['metadata']
  readonly stop: MessageFold['stop']
}

/** What a message is made of, without the id and time that each fold gives anew. */
export function fold(events: readonly StreamEvent[]): Folded {
  const folding = new MessageFold()
  folding.push(events)
  const message = folding.message({ ids: sequentialIds('message'), clock: systemClock })
  const { content, toolCalls, metadata } = message
  return { content, toolCalls, metadata, stop: folding.stop }
}

/** Throws when events break the grammar: every block one start, deltas of its kind, one stop. */
export function checkGrammar(events: readonly StreamEvent[]): void {
  const open = new Map<number, string>()
  let seen = 0
  events.forEach((event, position) => {
    const fail = (why: string): never => {
      throw new Error(`Event ${position} (${event.type}, index ${event.index}): ${why}`)
    }
    if ((position === 0) !== (event.type === 'message_start')) fail('message_start is first')
    if ((position === events.length - 1) !== (event.type === 'message_stop')) fail('stop is last')
    if (event.type === 'content_block_start') {
      if (event.index !== seen++) fail('indexes are consecutive')
      open.set(event.index, event.delta.block)
    } else if (event.type === 'content_block_stop') {
      if (!open.delete(event.index)) fail('stop without start')
    } else if (event.type.endsWith('_delta')) {
      if (`${open.get(event.index)}_delta` !== event.type) fail('delta outside its block')
    }
  })
  if (open.size > 0) throw new Error(`Blocks never stopped: ${[...open.keys()].join(', ')}`)
}
