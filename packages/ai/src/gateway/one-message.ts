import type { MessageStopEvent, StreamEvent } from '../contract/event.ts'
import { addUsage } from '../contract/turn.ts'

/**
 * Merges several messages of one answer (sent when a vendor paused and continued) into one: block
 * indexes continue, only the first start and the last stop are kept, usage is summed. Events of tool
 * executions are dropped.
 */
export async function* oneMessage(
  batches: AsyncIterable<readonly StreamEvent[]>,
): AsyncGenerator<readonly StreamEvent[], void> {
  let offset = 0
  let blocks = 0
  let stop: MessageStopEvent | undefined
  let isStarted = false
  for await (const batch of batches) {
    const events: StreamEvent[] = []
    for (const event of batch) {
      switch (event.type) {
        case 'message_start':
          offset = blocks
          if (!isStarted) events.push(event)
          isStarted = true
          break
        case 'message_stop':
          if (stop) {
            const usage = addUsage(stop.delta.usage, event.delta.usage)
            const sources = [...(stop.delta.sources ?? []), ...(event.delta.sources ?? [])]
            stop = { ...event, delta: { ...event.delta, usage, sources } }
          } else stop = event
          break
        case 'tool_execution_start':
        case 'tool_execution_end':
          break
        case 'content_block_start':
        case 'content_block_stop':
        case 'text_delta':
        case 'reasoning_delta':
        case 'object_delta':
        case 'tool_call_delta':
        case 'image_delta':
        case 'audio_delta':
        case 'video_delta': {
          const index = event.index + offset
          if (event.type === 'content_block_start') blocks = index + 1
          events.push(offset === 0 ? event : { ...event, index })
          break
        }
        default:
          event satisfies never
      }
    }
    if (events.length > 0) yield events
  }
  if (stop) yield [stop]
}
