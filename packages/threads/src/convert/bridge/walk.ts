import { joinPointer, type Loss } from '../../issue.ts'
import type { SystemMessage, Thread, ThreadMessage, UserTurn } from '../../document/thread.ts'
import type { MessagePart } from '../../document/part.ts'

/** One message of a thread, from a user turn or an agent turn. */
export type WalkedMessage =
  | {
      readonly kind: 'request' | 'response'
      /** The message; for a request from a person, the UserTurn. */
      readonly message: UserTurn | ThreadMessage
      readonly parts: readonly MessagePart[]
      readonly at: string
      /** The agent whose message it is; undefined for a person. */
      readonly agentId: string | undefined
      readonly pointer: string
      readonly id: string
    }
  | {
      readonly kind: 'system'
      readonly message: SystemMessage
      readonly at: string
      readonly pointer: string
      readonly id: string
    }

const TURN_FIELDS = ['turn_type', 'messages']

/**
 * Iterates over the messages of a thread in order, for formats that are lists of messages. Fields of the
 * thread and of agent turns, which such formats do not have, are reported as losses.
 */
export function* walkMessages(
  thread: Thread,
  losses: Losses,
  format: string,
): Generator<WalkedMessage, void, undefined> {
  losses.rest(
    thread,
    '',
    ['version', 'turns'],
    `${format} is a list of messages; the thread keeps this`,
  )
  for (const [index, turn] of thread.turns.entries()) {
    const pointer = `/turns/${index}`
    const id = turn.turn_id ?? `${thread.thread_id}:${index}`
    if (turn.turn_type === 'user') {
      const { submitted_at: at, parts } = turn
      yield { kind: 'request', message: turn, parts, at, agentId: undefined, pointer, id }
    } else if (Array.isArray(turn.messages)) {
      losses.rest(turn, pointer, TURN_FIELDS, `${format} has no turns`)
      for (const [messageIndex, message] of turn.messages.entries()) {
        const place = {
          at: message.timestamp,
          pointer: joinPointer(pointer, 'messages', messageIndex),
          id: `${id}.${messageIndex}`,
        }
        if (message.message_type === 'system') yield { kind: 'system', message, ...place }
        else {
          const { message_type: kind, parts, agent_id: agentId } = message
          yield { kind, message, parts, agentId, ...place }
        }
      }
    } else {
      losses.add(pointer, 'a kind of turn that is not known here')
    }
  }
}

/**
 * Collects the data that a conversion cannot keep. `null` is treated as absent, because no target format
 * distinguishes the two.
 */
export class Losses {
  readonly list: Loss[] = []

  add(pointer: string, reason: string): void {
    this.list.push({ pointer, reason })
  }

  /**
   * Reports every field of `value` that is not in the list `carried`, so that no new field is lost silently.
   */
  rest(value: object, pointer: string, carried: readonly string[], reason: string): void {
    for (const [key, field] of Object.entries(value)) {
      if (field === undefined || field === null || carried.includes(key)) continue
      this.list.push({ pointer: joinPointer(pointer, key), reason })
    }
  }
}
