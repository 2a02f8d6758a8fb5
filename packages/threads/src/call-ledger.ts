/**
 * Pairs tool calls with what answers them, over a whole thread, in order of position: an answer belongs to the nearest
 * earlier call with its id that is still open. Ids may repeat, also within one response.
 */
export class CallLedger<Call> {
  readonly #open = new Map<string, Call[]>()
  readonly #known = new Set<string>()

  call(id: string, call: Call): void {
    this.#known.add(id)
    const waiting = this.#open.get(id)
    if (waiting === undefined) this.#open.set(id, [call])
    else waiting.push(call)
  }

  /** Closes the call that an answer with this id belongs to, and gives it back; undefined when none is open. */
  answer(id: string): Call | undefined {
    const waiting = this.#open.get(id)
    if (waiting === undefined) return undefined
    const call = waiting.pop()
    if (waiting.length === 0) this.#open.delete(id)
    return call
  }

  /** Whether there was a call with this id, open or closed. */
  knows(id: string): boolean {
    return this.#known.has(id)
  }

  /** Calls without an answer, grouped by id in the order in which the ids opened. */
  *open(): Iterable<Call> {
    for (const waiting of this.#open.values()) yield* waiting
  }
}
