import { useEffect, useRef } from 'react'
import { createStore, type PageStore } from './store.ts'

/** What a key does here. */
export interface KeyBinding {
  /** A key, or two keys one after the other: `j`, `g i`, `?`. */
  readonly keys: string
  /** What the key does, for the list that `?` shows. */
  readonly does: string
  readonly run: () => void
}

/** The keys that work at the moment, the most recently bound first; `?` lists them. */
export const activeKeys: PageStore<readonly KeyBinding[]> = createStore<readonly KeyBinding[]>([])

/** How long after the first key of a pair the second one may follow, in ms. */
const PAIR_MS = 1200

let first: { readonly key: string; readonly at: number } | undefined

/** Binds keys while the component is mounted. They do nothing while the person types or a dialog is open. */
export function useKeys(bindings: readonly KeyBinding[]): void {
  const latest = useRef(bindings)
  latest.current = bindings
  const named = bindings.map(({ keys, does }) => `${keys} ${does}`).join('\n')
  useEffect(() => {
    const bound = latest.current.map(({ keys, does }, index) => ({
      keys,
      does,
      run: () => latest.current[index]?.run(),
    }))
    activeKeys.set([...bound, ...activeKeys.get()])
    return () => activeKeys.set(activeKeys.get().filter((one) => !bound.includes(one)))
  }, [named])
}

/** Handles a key of the page. */
export function onPageKey(event: KeyboardEvent): void {
  if (event.defaultPrevented || event.ctrlKey || event.metaKey || event.altKey) return
  if (isTyping(event.target) || document.querySelector('dialog[open]')) return
  const isPair = first !== undefined && event.timeStamp - first.at < PAIR_MS
  const keys = isPair ? `${first!.key} ${event.key}` : event.key
  first = undefined
  const known = activeKeys.get()
  const binding = known.find((one) => one.keys === keys)
  if (binding) {
    event.preventDefault()
    binding.run()
  } else if (known.some((one) => one.keys.startsWith(`${event.key} `)))
    first = { key: event.key, at: event.timeStamp }
}

function isTyping(target: EventTarget | null): boolean {
  return (
    target instanceof HTMLElement &&
    (target.isContentEditable || /^(?:INPUT|TEXTAREA|SELECT)$/.test(target.tagName))
  )
}
