/** A thread that was taken from the queue. */
export interface QueuedThread {
  readonly threadId: string
  readonly tenant: string
}

/** Threads that wait for a free place, in the order of their arrival within each tenant. */
export class FairQueue {
  readonly #queues = new Map<string, Set<string>>()
  readonly #tenants = new Map<string, string>()
  readonly #working = new Map<string, number>()
  /** Whether threads of more than one tenant have been seen. */
  #isShared = false
  #firstTenant: string | undefined

  get size(): number {
    return this.#tenants.size
  }

  has(threadId: string): boolean {
    return this.#tenants.has(threadId)
  }

  add(threadId: string, tenant: string): void {
    if (this.has(threadId)) return
    this.#firstTenant ??= tenant
    this.#isShared ||= tenant !== this.#firstTenant
    const queue = this.#queues.get(tenant) ?? new Set()
    this.#queues.set(tenant, queue.add(threadId))
    this.#tenants.set(threadId, tenant)
  }

  clear(): void {
    this.#queues.clear()
    this.#tenants.clear()
  }

  /**
   * Takes the next thread for one of `free` places out of `all`, and counts it as working until `done`. The
   * place goes to the tenant with the fewest working threads; among equals, to the one that has waited
   * longest for its turn. As soon as there are several tenants, the last eighth of the places is kept for
   * tenants that have no thread working, so that a tenant with long runs cannot occupy everything.
   */
  take(free: number, all: number): QueuedThread | undefined {
    if (free <= 0) return undefined
    let best: string | undefined
    for (const tenant of this.#queues.keys())
      if (best === undefined || this.#count(tenant) < this.#count(best)) best = tenant
    if (best === undefined) return undefined
    const kept = this.#isShared ? Math.floor(all / 8) : 0
    if (free <= kept && this.#count(best) > 0) return undefined
    const queue = this.#queues.get(best)!
    const [threadId] = queue as Iterable<string> as [string] // an empty queue is removed
    queue.delete(threadId)
    this.#tenants.delete(threadId)
    this.#queues.delete(best)
    // Put back at the end: the other tenants with as few working threads come first.
    if (queue.size > 0) this.#queues.set(best, queue)
    this.#working.set(best, this.#count(best) + 1)
    return { threadId, tenant: best }
  }

  /** A thread that was taken no longer works. */
  done(tenant: string): void {
    const count = this.#count(tenant) - 1
    if (count > 0) this.#working.set(tenant, count)
    else this.#working.delete(tenant)
  }

  #count(tenant: string): number {
    return this.#working.get(tenant) ?? 0
  }
}
