import { canonicalJson } from '@skein/base'
import type { RuntimeEvent } from '../contract/event.ts'
import type { Claim, Store } from '../store/store.ts'
import { isStoreError, type StoreErrorCode } from '../store/store-error.ts'
import type { NewThread } from '../store/commit.ts'

/** Compares two values as JSON, so that the order of fields does not matter. */
export function same(actual: unknown, expected: unknown, what: string): void {
  const [is, should] = [actual, expected].map((value) =>
    value === undefined ? 'undefined' : canonicalJson(JSON.parse(JSON.stringify(value))),
  )
  if (is !== should) throw new Error(`Expected ${what} to be ${should}, but it is ${is}.`)
}

/** Checks that the promise rejects with this code. */
export async function refused(promise: Promise<unknown>, code: StoreErrorCode): Promise<void> {
  const error = await promise.then(
    () => undefined,
    (reason: unknown) => reason,
  )
  if (!isStoreError(error, code))
    throw new Error(`Expected a refusal with ${code}, but got ${String(error)}.`, { cause: error })
}

/** Returns the columns of a new thread without a parent, for tests. */
export function newThread(rootId: string, rest: Partial<NewThread> = {}): NewThread {
  return {
    tenant: 'acme',
    owner: null,
    agent: 'helper',
    parentId: null,
    rootId,
    title: null,
    tags: [],
    clientId: null,
    createdAt: 1000,
    ...rest,
  }
}

/** Returns a `value_set` event; `time` is in ms. */
export function valueSet(value: unknown, time = 2000): RuntimeEvent {
  // The cast hides that the value may not be JSON: some tests expect the store to refuse it.
  return { type: 'value_set', at: new Date(time).toISOString(), key: 'k', value: value as string }
}

/** Claims a thread that no other owner holds, for an hour. */
export async function claimed(store: Store, id: string, owner = 'one'): Promise<Claim> {
  const claim = await store.claim(id, { owner, leaseMs: 3_600_000 })
  if (!claim || 'heldBy' in claim) throw new Error(`Expected ${id} to be free.`)
  return claim
}

/** Creates root threads with these ids. */
export async function addThreads(store: Store, ...ids: readonly string[]): Promise<void> {
  await store.commit({
    point: 'test',
    threads: ids.map((id) => ({ id, create: newThread(id) })),
  })
}
