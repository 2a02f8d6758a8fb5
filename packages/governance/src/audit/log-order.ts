/** What is wrong with the numbering of a request's entries. */
type Disorder = 'insert' | 'reorder' | 'truncate'

/** An entry that has a wrong number or, for `edit`, that is not readable. */
export interface OrderFault {
  readonly index: number
  kind: Disorder | 'edit'
}

/**
 * Checks that the `seq` of each request counts up. A number that appears twice is reported as `insert`, a
 * skipped number as `truncate`, or as `reorder` if it appears later.
 */
export class LogOrder {
  readonly #next = new Map<string, number>()
  /** Skipped numbers, each with the fault that was reported for it. */
  readonly #gaps = new Map<string, OrderFault>()

  accept(index: number, request_id: string, seq: number): OrderFault | undefined {
    const next = this.#next.get(request_id) ?? 0
    if (seq === next) {
      this.#next.set(request_id, seq + 1)
      return undefined
    }
    if (seq > next)
      return this.#skip({ index, kind: 'truncate' }, { request_id, expected: next, seq })
    const gap = this.#gaps.get(`${request_id}/${seq}`)
    if (gap === undefined) return { index, kind: 'insert' }
    gap.kind = 'reorder'
    return undefined
  }

  #skip(
    fault: OrderFault,
    { request_id, expected, seq }: { request_id: string; expected: number; seq: number },
  ): OrderFault {
    // At most 64 missing numbers are stored, so that one forged number cannot fill the memory.
    const last = Math.min(seq, expected + 64)
    for (let missing = expected; missing < last; missing++)
      this.#gaps.set(`${request_id}/${missing}`, fault)
    this.#next.set(request_id, seq + 1)
    return fault
  }

  /**
   * Removes the expected number of a request that has ended. Later entries of that request are reported
   * by LogSemantics.
   */
  forget(request_id: string): void {
    this.#next.delete(request_id)
  }
}
