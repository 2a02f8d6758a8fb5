import { decodeBase64 } from '@skein/base'
import type { AssistantContent, ProviderMetadata } from '../contract/content.ts'
import type { ContentBlockStartEvent, MessageStopEvent, StreamEvent } from '../contract/event.ts'
import type { AssistantMessage } from '../contract/message.ts'

/**
 * Returns the events of a known message, e.g. from a log, for code that answers in place of a model. A
 * message built from these events has the same content and calls, but a new id.
 */
export function messageEvents(
  message: AssistantMessage,
  stop: Omit<MessageStopEvent['delta'], 'metadata'>,
): readonly StreamEvent[] {
  const { content, toolCalls = [], metadata } = message
  const events: StreamEvent[] = [{ type: 'message_start', index: 0, delta: {} }]
  const push = (
    start: ContentBlockStartEvent['delta'],
    deltas: (index: number) => readonly StreamEvent[],
    own: ProviderMetadata | undefined,
  ): void => {
    const index = events.filter(({ type }) => type === 'content_block_start').length
    events.push({ type: 'content_block_start', index, delta: start }, ...deltas(index))
    events.push({ type: 'content_block_stop', index, delta: { metadata: own } })
  }
  for (const block of content)
    push(startOf(block), (index) => deltasOf(block, index), block.metadata)
  for (const { toolCallId, toolName, arguments: args, invalidArguments, metadata } of toolCalls) {
    const argumentsJson = invalidArguments?.text ?? JSON.stringify(args)
    const delta = { toolCallId, toolName, argumentsJson }
    const start = { block: 'tool_call', toolCallId, toolName } as const
    push(start, (index) => [{ type: 'tool_call_delta', index, delta }], metadata)
  }
  events.push({ type: 'message_stop', index: 0, delta: { ...stop, metadata } })
  return events
}

function startOf(block: AssistantContent): ContentBlockStartEvent['delta'] {
  return block.type === 'native' ? { block: 'native', name: block.name } : { block: block.type }
}

function deltasOf(block: AssistantContent, index: number): readonly StreamEvent[] {
  switch (block.type) {
    case 'text':
    case 'reasoning': {
      const type = block.type === 'text' ? 'text_delta' : 'reasoning_delta'
      return [{ type, index, delta: { text: block.text } }]
    }
    case 'image': {
      const { source, mimeType } = block
      const url = source.type === 'url' ? source.url : undefined
      const data =
        source.type === 'bytes'
          ? source.data
          : source.type === 'base64'
            ? decodeBase64(source.data)
            : new Uint8Array()
      return [{ type: 'image_delta', index, delta: { data, mimeType, url } }]
    }
    case 'audio':
    case 'video': {
      const { data, mimeType } = block
      const type = block.type === 'audio' ? 'audio_delta' : 'video_delta'
      return [{ type, index, delta: { data, mimeType } }]
    }
    case 'native':
      return []
  }
}

/**
 * Converts text events of a structured answer to `object_delta`, because the decoders of all vendor formats
 * produce text events.
 */
export function toObjectEvents(events: readonly StreamEvent[]): readonly StreamEvent[] {
  return events.map((event) => {
    if (event.type === 'text_delta')
      return { type: 'object_delta', index: event.index, delta: event.delta }
    if (event.type === 'content_block_start' && event.delta.block === 'text')
      return { ...event, delta: { ...event.delta, block: 'object' } }
    return event
  })
}
