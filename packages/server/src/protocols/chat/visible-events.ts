import type { NumberedEvent } from '@skein/runtime'

export type AnyEvent = NumberedEvent['event']

/** Returns false for messages that only models see. */
export function isVisible(event: AnyEvent): boolean {
  const { isSilent, subagentId } = event as { isSilent?: boolean; subagentId?: string }
  return isSilent !== true && subagentId === undefined
}

/** Whether the event is a message of a person, which is followed by a new answer. */
export function isShownUserMessage(event: AnyEvent): boolean {
  return event.type === 'message_added' && event.message.type === 'user' && isVisible(event)
}
