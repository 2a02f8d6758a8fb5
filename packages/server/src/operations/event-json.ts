import type { NumberedEvent } from '@skein/runtime'
import { publicEvent } from '@skein/runtime/view'

type AnyEvent = NumberedEvent['event']

/** The JSON of events that were encoded before, by event: all readers of a thread get the same event objects. */
const texts = new WeakMap<AnyEvent, string>()

/** Returns the JSON of an event without the values that clients must not see. */
export function publicEventJson(event: AnyEvent): string {
  const earlier = texts.get(event)
  if (earlier !== undefined) return earlier
  const json = JSON.stringify(publicEvent(event))
  texts.set(event, json)
  return json
}

/**
 * Returns the event with tool results of at most `maxChars` characters; undefined if none is longer. A longer
 * result becomes a text: the beginning of the result, or of its JSON, and how many characters are missing.
 */
export function withoutLongResults<Event extends AnyEvent>(
  event: Event,
  maxChars: number,
): Event | undefined {
  return shortened(event, maxChars) as Event | undefined // shorter results do not change the type of an event
}

function shortened(event: AnyEvent, maxChars: number): AnyEvent | undefined {
  // Most events are short. `publicEventJson` caches the JSON, which readers of streams need anyway.
  if (publicEventJson(event).length <= maxChars) return undefined
  if (event.type === 'tool_execution_end' || event.type === 'late_result') {
    const result = startOf(event.result, maxChars)
    return result === undefined ? undefined : { ...event, result }
  }
  if (event.type !== 'message_added' || event.message.type !== 'tool_result') return undefined
  const results = event.message.results.map((one) => {
    const result = startOf(one.result, maxChars)
    return result === undefined ? one : { ...one, result }
  })
  const { message } = event
  const isCut = results.some((one, index) => one !== message.results[index])
  return isCut ? { ...event, message: { ...message, results } } : undefined
}

function startOf(result: unknown, maxChars: number): string | undefined {
  const text = typeof result === 'string' ? result : (JSON.stringify(result) ?? '')
  if (text.length <= maxChars) return undefined
  return `${text.slice(0, maxChars)}… [${text.length - maxChars} more characters]`
}
