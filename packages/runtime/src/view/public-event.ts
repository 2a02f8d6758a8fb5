import type { NumberedEvent } from '../contract/runtime-api.ts'

type AnyEvent = NumberedEvent['event']

const HIDDEN = '[secret]'

/** All readers of a thread are given the same event objects, so each is written as JSON once. */
const written = new WeakMap<AnyEvent, string>()

/** The JSON of an event as clients may see it. */
export function publicEventJson(event: AnyEvent): string {
  const known = written.get(event)
  if (known !== undefined) return known
  const json = JSON.stringify(publicEvent(event))
  written.set(event, json)
  return json
}

/** An event as clients may see it: without sealed values and approval tokens. */
export function publicEvent<Event extends AnyEvent>(event: Event): Event {
  return withoutSecrets(event) as Event // an event keeps its type when values in it are hidden
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
    default:
      return event
  }
}
