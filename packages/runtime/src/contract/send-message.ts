import type { UserContent } from '@skein/ai'
import type { JsonObject } from '@skein/base'

/**
 * What a message does to a thread that is busy: in a session (also one that waits), or with messages in its
 * queue. `enqueue`: it waits for the next step. `reject`: it is refused with `THREAD_BUSY`. `cut`: the running
 * turn ends, what it said stays, and the next turn answers the message. `restart`: as `cut`, and models are no
 * longer shown what was said since the last answer.
 */
export const IF_BUSY = ['enqueue', 'reject', 'cut', 'restart'] as const

/** A message to send to a thread. */
export interface SendMessage {
  readonly text?: string
  readonly content?: readonly UserContent[]
  /** Who gets the message: for `user` (default) the agent (side A), for `assistant` the person or second agent. */
  readonly role?: 'user' | 'assistant'
  readonly isSilent?: boolean
  /** Paths of files of the thread. */
  readonly attachments?: readonly string[]
  readonly userId?: string
  /** May not contain `from`, `kind` and `for`, with which the runtime marks its own messages. */
  readonly metadata?: JsonObject
  /** If two messages are sent with the same id, only the first is queued. */
  readonly messageId?: string
  /** The name of another model of the registry, which answers for the agent (side A) until the next message. */
  readonly model?: string
  /** Settings of the model that answers, until the next message; they override the agent's `providerOptions`. */
  readonly settings?: JsonObject
  /**
   * A call of a tool of the agent (side A), which is made in place of asking a model. It is judged by the policy
   * as any other call, and the session ends with its result.
   */
  readonly call?: { readonly toolName: string; readonly arguments: JsonObject }
  /** What happens if the thread is busy (see `IF_BUSY`). Default `enqueue`. */
  readonly ifBusy?: (typeof IF_BUSY)[number]
}

/** A message that was queued. */
export interface Sent {
  readonly queueId: string
  readonly messageId: string
  /** Number of the event that queued the message; a subscription can begin after it. */
  readonly seq: number
}
