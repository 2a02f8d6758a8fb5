import type { JsonValue } from '@skein/base'
import type { StreamEvent } from '../../contract/event.ts'
import { objectOf } from '../read-json.ts'
import { invalidResponse, vendorFailure } from '../wire-error.ts'
import type { DecodeContext } from '../wire.ts'
import { readError } from './error.ts'
import { AnthropicDecoder } from './stream.ts'
import type { AnthropicDialect } from './types.ts'

/**
 * Decodes a complete answer: it is passed to the stream decoder as blocks that are complete when they
 * start.
 */
export function decodeResponse(
  body: JsonValue,
  context: DecodeContext<AnthropicDialect>,
): StreamEvent[] {
  const { provider } = context.target
  const error = readError(body)
  if (error) throw vendorFailure(provider, error)
  const message = objectOf(body)
  const content = message?.['content']
  if (!message || !Array.isArray(content)) {
    throw invalidResponse(provider, 'it has no list of content')
  }
  const decoder = new AnthropicDecoder(context)
  const { usage, stop_reason } = message
  const events = decoder.decode({ type: 'message_start', message })
  content.forEach((block: JsonValue, index) => {
    events.push(...decoder.decode({ type: 'content_block_start', index, content_block: block }))
    events.push(...decoder.decode({ type: 'content_block_stop', index }))
  })
  decoder.decode({
    type: 'message_delta',
    delta: { stop_reason: stop_reason ?? null },
    usage: usage ?? {},
  })
  events.push(...decoder.decode({ type: 'message_stop' }))
  return events
}
