import type { Message } from '@skein/ai'
import type { DrainContext } from '../context/drain-context.ts'

/** What a request was built from: the number of the log's last event at that time, and the messages sent. */
export interface Basis {
  readonly seq: number
  readonly messages: readonly Message[]
}

/** Whether the request contains this message, or the results of the message's calls. */
export function isBuiltFrom({ messages }: Basis, messageId: string): boolean {
  return messages.some(({ id }) => id === messageId || id === `${messageId}.results`)
}

/** Whether a message that the request contains was edited or removed after the request was built. */
export function isOutdated({ state: { entries, editSeq } }: DrainContext, basis: Basis): boolean {
  if (editSeq <= basis.seq) return false
  return entries.some(
    ({ editedSeq, message }) => editedSeq > basis.seq && isBuiltFrom(basis, message.id),
  )
}
