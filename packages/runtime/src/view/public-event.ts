import type { RuntimeEvent } from '../contract/event.ts'
import type { NumberedEvent } from '../contract/runtime-api.ts'

type AnyEvent = NumberedEvent['event']

const HIDDEN = '[secret]'

/** The JSON of events that were encoded before, by event: all readers of a thread get the same event objects. */
const written = new WeakMap<AnyEvent, string>()

/** Returns the JSON of an event without the values that clients must not see. */
export function publicEventJson(event: AnyEvent): string {
  const known = written.get(event)
  if (known !== undefined) return known
  const json = JSON.stringify(publicEvent(event))
  written.set(event, json)
  return json
}

/**
 * Returns an event without encrypted values, approval tokens, signed grants and the stacks of tools that threw, which
 * clients must not see.
 */
export function publicEvent<Event extends AnyEvent>(event: Event): Event {
  return withoutSecrets(event) as Event // removing values does not change the type of an event
}

function withoutSecrets(event: AnyEvent): AnyEvent {
  switch (event.type) {
    case 'env_set':
      return event.valueType === 'secret' && event.value !== null
        ? { ...event, value: HIDDEN }
        : event
    case 'variables_provided': {
      const values = Object.entries(event.values).map(
        ([name, value]) =>
          [name, value.valueType === 'secret' ? { ...value, value: HIDDEN } : value] as const,
      )
      return { ...event, values: Object.fromEntries(values) }
    }
    case 'interrupt_answered': {
      if (event.answer.type !== 'approve' || event.answer.token === undefined) return event
      const { token: _, ...answer } = event.answer
      return { ...event, answer }
    }
    case 'grant_made':
      return { ...event, grant: HIDDEN }
    case 'tool_execution_end':
      return withoutCause(event)
    default:
      return event
  }
}

/** Removes what a tool threw, which only operators see. */
export function withoutCause(
  event: Extract<RuntimeEvent, { type: 'tool_execution_end' }>,
): RuntimeEvent {
  if (event.cause === undefined) return event
  const { cause: _, ...shown } = event
  return shown
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
