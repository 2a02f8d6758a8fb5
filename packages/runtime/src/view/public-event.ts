import type { RuntimeEvent } from '../contract/event.ts'
import type { NumberedEvent } from '../contract/subscription.ts'

type AnyEvent = NumberedEvent['event']

const HIDDEN = '[secret]'

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
