import type { RuntimeEvent, Store } from '@skein/runtime'
import type { Finished } from './invariants/finished.ts'
import { spoiling } from './laws-order.ts'

/** What a person was told about a grant. */
export interface GrantNote {
  readonly threadId: string
  readonly grantId: string
  readonly type: 'grant_made' | 'grant_revoked'
}

/** The standing grants of one thread that are in force at a place of its log. */
export class Grants {
  readonly #inForce = new Map<string, { readonly tool: string; readonly until: number }>()

  /** Goes on to the next event of the log. */
  see(event: RuntimeEvent): void {
    if (event.type === 'grant_made')
      this.#inForce.set(event.grantId, { tool: event.tool, until: Date.parse(event.expiresAt) })
    if (event.type === 'grant_revoked') this.#inForce.delete(event.grantId)
  }

  /** Whether a call of this tool may start at this time without an approval of its own. */
  cover(tool: string, at: string): boolean {
    return [...this.#inForce.values()].some(
      (grant) => grant.tool === tool && grant.until > Date.parse(at),
    )
  }
}

/** What a person was told to be granted or revoked is in the log, once. */
export function grantLaws({ world, threads, clients }: Finished): void {
  for (const { threadId, grantId, type } of clients.grants) {
    const events = threads.get(threadId)?.events ?? []
    const count = events.filter((event) => event.type === type && event.grantId === grantId).length
    if (count !== 1)
      world.violate(`${threadId}: ${type} ${grantId} was confirmed and is there ${count} times`)
  }
}

/** Planted bugs against these laws; see `plants.ts`. */
export const grantPlants: Readonly<Record<string, (store: Store) => Store>> = {
  /** A revocation is confirmed, and not written. */
  'lost-revocation': (store) =>
    spoiling(store, ({ threads: [own] }) => {
      const kept = own?.append?.filter(({ type }) => type !== 'grant_revoked')
      if (kept && kept.length < own!.append!.length) Object.assign(own!, { append: kept })
    }),

  /** Drains do not see that a grant was revoked. */
  'unseen-revocation': (store) =>
    new Proxy(store, {
      get(target, name) {
        const member: unknown = Reflect.get(target, name)
        if (name === 'events')
          return async (...args: Parameters<Store['events']>) =>
            (await target.events(...args)).map((stored) =>
              stored.event.type === 'grant_revoked'
                ? { ...stored, event: { ...stored.event, grantId: 'another' } }
                : stored,
            )
        return typeof member === 'function' ? member.bind(target) : member
      },
    }),
}
