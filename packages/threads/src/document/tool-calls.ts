import { isObject } from '@skein/base'
import type { Thread, Turn } from './thread.ts'
import type { MessagePart, RetryPromptPart, ToolCallPart, ToolReturnPart } from './part.ts'

/**
 * The state of a call: `pending` has no answer yet, `completed` returned, `failed` returned an error,
 * `denied` was refused by a person, `interrupted` was cut off, and for `retried` the model was asked to call
 * again.
 */
export type ToolCallState =
  'pending' | 'completed' | 'failed' | 'denied' | 'interrupted' | 'retried'

/** One tool call of a thread with its state. */
export interface ToolCallRecord {
  readonly call: ToolCallPart
  readonly state: ToolCallState
  /** The part that answers the call; undefined while the call is pending. */
  readonly answer: ToolReturnPart | RetryPromptPart | undefined
  readonly agent_id: string
  /** JSON pointer of the call in the thread. */
  readonly pointer: string
}

/**
 * Returns every tool call of the application in order, with its state, which is derived from the messages and
 * not stored. Calls that a provider ran itself are not included.
 */
export function toolCalls(thread: Pick<Thread, 'turns'>): readonly ToolCallRecord[] {
  const records: Mutable<ToolCallRecord>[] = []
  const ledger = new CallLedger<Mutable<ToolCallRecord>>()
  for (const { part, agentId, pointer } of eachPart(thread.turns)) {
    switch (part.part_kind) {
      case 'tool-call': {
        const state = 'pending'
        const record = { call: part, state, answer: undefined, agent_id: agentId, pointer } as const
        records.push(record)
        ledger.call(part.tool_call_id, record)
        break
      }
      case 'tool-return':
      case 'retry-prompt': {
        // A retry without a tool name has a generated id and does not answer a call.
        if (part.part_kind === 'retry-prompt' && !part.tool_name) break
        const record = ledger.answer(part.tool_call_id ?? '')
        if (record === undefined) break
        record.answer = part
        if (part.part_kind === 'retry-prompt') record.state = 'retried'
        else if (part.outcome === 'denied' || part.outcome === 'interrupted')
          record.state = part.outcome
        else {
          const { outcome, status } = part
          const isFailed =
            outcome === 'failed' || status === 'error' || status === 'validation_error'
          record.state = isFailed ? 'failed' : 'completed'
        }
        break
      }
      case 'text':
      case 'thinking':
      case 'user-prompt':
      case 'file':
      case 'builtin-tool-call':
      case 'builtin-tool-return':
      case 'compaction':
      case 'speech':
      case 'tool-availability-delta':
        break
      default:
        part satisfies never
    }
  }
  return records
}

/** Returns the calls that wait for an approval or a result, in the whole thread, oldest first. */
export function pendingToolCalls(thread: Pick<Thread, 'turns'>): readonly ToolCallPart[] {
  return toolCalls(thread)
    .filter(({ state }) => state === 'pending')
    .map(({ call }) => call)
}

type Mutable<T> = { -readonly [Key in keyof T]: T[Key] }

function* eachPart(
  turns: readonly Turn[],
): Iterable<{ part: MessagePart; agentId: string; pointer: string }> {
  for (const [turnIndex, turn] of turns.entries()) {
    if (turn.turn_type === 'user') {
      yield* partsOf(turn.parts, '', `/turns/${turnIndex}`)
      continue
    }
    // A turn of an unknown type may have no messages.
    for (const [index, message] of (turn.messages ?? []).entries()) {
      if (message.message_type === 'system') continue
      yield* partsOf(message.parts, message.agent_id, `/turns/${turnIndex}/messages/${index}`)
    }
  }
}

function* partsOf(
  parts: readonly MessagePart[],
  agentId: string,
  at: string,
): Iterable<{ part: MessagePart; agentId: string; pointer: string }> {
  for (const [index, part] of parts.entries()) {
    if (isObject(part)) yield { part, agentId, pointer: `${at}/parts/${index}` }
  }
}

/**
 * Matches tool calls with their answers over a whole thread, in order of position: an answer belongs to the
 * nearest earlier call with its id that is still open. Ids may repeat, even within one response.
 */
export class CallLedger<Call extends object> {
  /** Open calls by id: one call, a list (the latest is last), or undefined when they are all closed. */
  readonly #calls = new Map<string, Call | Call[] | undefined>()

  call(id: string, call: Call): void {
    const waiting = this.#calls.get(id)
    if (waiting === undefined) this.#calls.set(id, call)
    else if (Array.isArray(waiting)) waiting.push(call)
    else this.#calls.set(id, [waiting, call])
  }

  /**
   * Closes the call that an answer with this id belongs to, and returns the call; undefined when no call with
   * the id is open.
   */
  answer(id: string): Call | undefined {
    const waiting = this.#calls.get(id)
    if (waiting === undefined) return undefined
    if (Array.isArray(waiting)) return waiting.pop()
    this.#calls.set(id, undefined)
    return waiting
  }

  /** Checks whether there was a call with this id, open or closed. */
  knows(id: string): boolean {
    return this.#calls.has(id)
  }

  /** Returns the calls without an answer, grouped by id in the order in which the ids first appeared. */
  *open(): Iterable<Call> {
    for (const waiting of this.#calls.values()) {
      if (Array.isArray(waiting)) yield* waiting
      else if (waiting !== undefined) yield waiting
    }
  }
}
