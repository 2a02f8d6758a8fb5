import { canonicalJson, isObject, type JsonValue } from '@skein/base'
import { threadTree } from '../recorded/facts-of.ts'
import type { RecordedCall, RecordedThread } from '../recorded/recorded-thread.ts'

/** A recorded call, and the number of the event that ended it. */
interface AnsweredCall {
  readonly threadId: string
  readonly call: RecordedCall
  readonly endSeq: number
}

/** A call of a run that differs from the recording. */
export interface NewCall {
  readonly threadId: string
  readonly toolCallId: string
  readonly toolName: string
  /** The arguments that the model sent. */
  readonly raw: unknown
}

/** The recorded results of tools, by name and by the arguments that the model sent. */
export class ToolAnswers {
  readonly #calls = new Map<string, AnsweredCall[]>()
  readonly #used = new Set<AnsweredCall>()
  readonly #placeOf: (threadId: string) => number

  /** `placeOf` tells how many recorded events of a thread were played before the run differed. */
  constructor(thread: RecordedThread, placeOf: (threadId: string) => number) {
    this.#placeOf = placeOf
    for (const { threadId, calls, events } of threadTree(thread)) {
      const ends = new Map<string, number>()
      for (const { seq, event } of events)
        if (event.type === 'tool_execution_end') ends.set(event.toolCallId, seq)
      for (const call of calls) {
        const key = keyOf(call.toolName, call.raw)
        const answered = { threadId, call, endSeq: ends.get(call.toolCallId) ?? Infinity }
        this.#calls.set(key, [...(this.#calls.get(key) ?? []), answered])
      }
    }
  }

  /**
   * Returns the recorded call with this name and these arguments. If the recording has several, they are used in order,
   * after those that were played, and the last of them again and again.
   */
  take({ threadId, toolCallId, toolName, raw }: NewCall): RecordedCall | undefined {
    const calls = this.#calls.get(keyOf(toolName, raw)) ?? []
    const left = calls.filter(
      (one) => !this.#used.has(one) && one.endSeq > this.#placeOf(one.threadId),
    )
    // A call that had begun when the run differed is the recorded one.
    const same = left.find((one) => one.threadId === threadId && one.call.toolCallId === toolCallId)
    const taken = same ?? left[0] ?? calls.at(-1)
    if (taken) this.#used.add(taken)
    return taken?.call
  }
}

/** Whether a schema makes the same of the arguments as in the recording. */
export function isParsedAlike({ parsed }: RecordedCall, now: unknown): boolean {
  if (parsed === undefined) return true
  return (
    canonicalJson(parsed) === canonicalJson(JSON.parse(JSON.stringify(now ?? null)) as JsonValue)
  )
}

function keyOf(toolName: string, raw: unknown): string {
  return `${toolName} ${canonicalJson(isObject(raw) ? raw : {})}`
}
