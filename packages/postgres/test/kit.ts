import type { RuntimeEvent, Store } from '@skein/runtime'

/** Creates a root thread. */
export function add(
  store: Store,
  id: string,
  rest: { readonly tenant?: string; readonly owner?: string | null; readonly by?: number } = {},
): Promise<unknown> {
  const { tenant = 'acme', owner = null, by } = rest
  const create = {
    tenant,
    owner,
    agent: 'a',
    parentId: null,
    rootId: id,
    title: null,
    tags: [],
    clientId: null,
    createdAt: 1,
  }
  const wake = by === undefined ? undefined : { by }
  return store.commit({ point: 'test', threads: [{ id, create, wake }] })
}

export function event(value: number | string): RuntimeEvent {
  return { type: 'value_set', at: new Date(0).toISOString(), key: 'k', value }
}

/** Appends one event to a thread. */
export function append(
  store: Store,
  id: string,
  value: number | string,
): ReturnType<Store['commit']> {
  return store.commit({ point: 'test', threads: [{ id, append: [event(value)] }] })
}

export async function valuesOf(store: Store, id: string): Promise<unknown[]> {
  const events = await store.events(id)
  return events.map((stored) => ('value' in stored.event ? stored.event.value : undefined))
}
