import type { ThreadEvent } from '../src/events/event.ts'
import {
  UIStreamEncoder,
  type UIStreamEncoderOptions,
} from '../src/convert/ai-sdk/encode-events.ts'
import type { UIMessageChunk } from '../src/convert/ai-sdk/types.ts'

/** The chunks of all these events, and of their end. */
export function encodeAll(
  events: readonly ThreadEvent[],
  options?: UIStreamEncoderOptions,
): UIMessageChunk[] {
  const encoder = new UIStreamEncoder(options)
  return [...events.flatMap((event) => encoder.push(event)), ...encoder.end()]
}
