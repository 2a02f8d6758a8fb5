import type { MessageStopEvent, StreamEvent } from '../contract/event.ts'
import { addUsage } from '../contract/turn.ts'

/**
 * Several messages of one answer (a vendor paused and went on) as one: blocks are counted on, only
 * the first start and the last stop remain, usage is summed. Tools run elsewhere are not told.
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
          stop = stop ? joined(stop, event) : event
          break
        case 'tool_execution_start':
        case 'tool_execution_end':
          break
        default: {
          const index = event.index + offset
          if (event.type === 'content_block_start') blocks = index + 1
          events.push(offset === 0 ? event : { ...event, index })
        }
      }
    }
    if (events.length > 0) yield events
  }
  if (stop) yield [stop]
}

function joined(before: MessageStopEvent, { delta }: MessageStopEvent): MessageStopEvent {
  return {
    type: 'message_stop',
    index: 0,
    delta: { ...delta, usage: addUsage(before.delta.usage, delta.usage) },
  }
}
