/**
 * Pairs tool calls with what answers them, over a whole thread, in order of position: an answer belongs to the nearest
 * earlier call with its id that is still open. Ids may repeat, also within one response.
 */
export class CallLedger<Call extends object> {
  /** Open calls by id: one, several (the latest last), or none any more. */
  readonly #calls = new Map<string, Call | Call[] | undefined>()

  call(id: string, call: Call): void {
    const waiting = this.#calls.get(id)
    if (waiting === undefined) this.#calls.set(id, call)
    else if (Array.isArray(waiting)) waiting.push(call)
    else this.#calls.set(id, [waiting, call])
  }

  /** Closes the call that an answer with this id belongs to, and gives it back; undefined when none is open. */
  answer(id: string): Call | undefined {
    const waiting = this.#calls.get(id)
    if (waiting === undefined) return undefined
    if (Array.isArray(waiting)) return waiting.pop()
    this.#calls.set(id, undefined)
    return waiting
  }

  /** Whether there was a call with this id, open or closed. */
  knows(id: string): boolean {
    return this.#calls.has(id)
  }

  /** Calls without an answer, grouped by id in the order in which the ids first appeared. */
  *open(): Iterable<Call> {
    for (const waiting of this.#calls.values()) {
      if (Array.isArray(waiting)) yield* waiting
      else if (waiting !== undefined) yield waiting
    }
  }
}
