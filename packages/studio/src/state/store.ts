import { useSyncExternalStore } from 'react'

/** A value that components can subscribe to. */
export interface PageStore<T> {
  get(): T
  set(next: T): void
  subscribe(listener: () => void): () => void
}

/** Creates a store. If the value that is set is the same as before, no one is notified. */
export function createStore<T>(initial: T): PageStore<T> {
  let value = initial
  const listeners = new Set<() => void>()
  return {
    get: () => value,
    set(next) {
      if (Object.is(next, value)) return
      value = next
      for (const listener of listeners) listener()
    },
    subscribe(listener) {
      listeners.add(listener)
      return () => void listeners.delete(listener)
    },
  }
}

/** Returns the value of a store; the component is rendered again when the value changes. */
export function useStore<T>(store: Pick<PageStore<T>, 'get' | 'subscribe'>): T {
  return useSyncExternalStore(store.subscribe, store.get)
}

/** Reads a small setting that is kept in the browser. Storage may be forbidden. */
export function readSetting(name: string): string | undefined {
  try {
    return localStorage.getItem(`studio.${name}`) ?? undefined
  } catch {
    return undefined
  }
}

/** Keeps a small setting; undefined removes it. */
export function writeSetting(name: string, value: string | undefined): void {
  try {
    if (value === undefined) localStorage.removeItem(`studio.${name}`)
    else localStorage.setItem(`studio.${name}`, value)
  } catch {
    // Storage is full or forbidden: the setting lasts until the page is closed.
  }
}
