import { canonicalJson, isObject, type JsonValue } from '@skein/base'
import { threadTree } from '../recorded/facts-of.ts'
import type { RecordedCall, RecordedThread } from '../recorded/recorded-thread.ts'

/** The recorded results of tools, by name and by the arguments that the model sent. */
export class ToolAnswers {
  readonly #calls = new Map<string, RecordedCall[]>()
  readonly #used = new Map<string, number>()

  constructor(thread: RecordedThread) {
    for (const { calls } of threadTree(thread))
      for (const call of calls) {
        const key = keyOf(call.toolName, call.raw)
        this.#calls.set(key, [...(this.#calls.get(key) ?? []), call])
      }
  }

  /**
   * Returns the recorded call with this name and these arguments. If the recording has several, they are used in order,
   * and the last of them again and again.
   */
  take(toolName: string, raw: unknown): RecordedCall | undefined {
    const key = keyOf(toolName, raw)
    const calls = this.#calls.get(key)
    const used = this.#used.get(key) ?? 0
    this.#used.set(key, used + 1)
    return calls?.[Math.min(used, calls.length - 1)]
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
