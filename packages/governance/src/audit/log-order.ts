/** How the entries of a request fail to count up, seen from one pass. */
export type Disorder = 'insert' | 'reorder' | 'truncate'

/** A place where counting failed. */
export interface OrderFault {
  readonly index: number
  kind: Disorder | 'edit'
}

/**
 * Watches the `seq` of each request. A number that comes again was inserted; one that is skipped was
 * removed, unless it comes later, which is a swap. Remembers requests only while they are open.
 */
export class LogOrder {
  readonly #next = new Map<string, number>()
  /** Numbers that were skipped, and where that was noticed. */
  readonly #gaps = new Map<string, OrderFault>()

  accept(index: number, request_id: string, seq: number): OrderFault | undefined {
    const expected = this.#next.get(request_id) ?? 0
    if (seq === expected) {
      this.#next.set(request_id, seq + 1)
      return undefined
    }
    if (seq > expected)
      return this.#skip({ index, kind: 'truncate' }, { request_id, expected, seq })
    const gap = this.#gaps.get(`${request_id}/${seq}`)
    if (gap === undefined) return { index, kind: 'insert' }
    gap.kind = 'reorder'
    return undefined
  }

  #skip(
    fault: OrderFault,
    { request_id, expected, seq }: { request_id: string; expected: number; seq: number },
  ): OrderFault {
    // A forged number must not cost memory.
    const last = Math.min(seq, expected + 64)
    for (let missing = expected; missing < last; missing++)
      this.#gaps.set(`${request_id}/${missing}`, fault)
    this.#next.set(request_id, seq + 1)
    return fault
  }

  /** The request is over; what comes after is the semantics' to find. */
  forget(request_id: string): void {
    this.#next.delete(request_id)
  }
}
