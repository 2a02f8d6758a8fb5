import { useEffect, useMemo, useRef, useState, type ReactNode } from 'react'
import { ChevronDown, ChevronUp, X } from '../../icons/lucide.ts'
import { useKeys } from '../../state/keys.ts'
import type { TreeState } from '../../state/tree.ts'
import type { ChatEntry } from './entry.tsx'

/** A search in the conversation. */
interface Find {
  readonly query: string
  setQuery(query: string): void
  readonly count: number
  /** The index, among the matches, of the match that is shown. */
  readonly place: number
  /** The entry at that place. */
  readonly index: number | undefined
  move(step: number): void
  close(): void
}

/** Searches the contents of all entries, also of collapsed ones; undefined while no search is open. */
export function useFind(
  entries: readonly ChatEntry[],
  tree: TreeState,
  show: (index: number) => void,
): Find | undefined {
  const [query, setQuery] = useState<string>()
  const [place, setPlace] = useState(0)
  useKeys([{ keys: 'f', does: 'Find in this thread', run: () => setQuery(query ?? '') }])
  const needle = query?.trim().toLowerCase() ?? ''
  const matches = useMemo(() => {
    if (needle === '') return []
    return entries.flatMap((entry, index) =>
      textOfEntry(entry, tree).includes(needle) ? [index] : [],
    )
  }, [entries, tree, needle])
  const at = Math.min(place, matches.length - 1)
  const go = (next: number, places: readonly number[]): void => {
    if (places.length === 0) return
    const index = (next + places.length) % places.length
    setPlace(index)
    show(places[index]!)
  }
  // The last match is shown first, because people mostly read the end of a thread.
  useEffect(() => go(matches.length - 1, matches), [needle])
  if (query === undefined) return undefined
  return {
    query,
    setQuery,
    count: matches.length,
    place: at,
    index: matches[at],
    move: (step) => go(at + step, matches),
    close: () => setQuery(undefined),
  }
}

/** Cache of the searchable texts. A changed entry is a new object, so a cached text is never outdated. */
const texts = new WeakMap<object, string>()
/** How many characters of an entry are searched at most. */
const MAX_CHARS = 100_000

function textOfEntry(entry: ChatEntry, tree: TreeState): string {
  const child = 'childId' in entry ? entry.childId : entry.type === 'child' ? entry.id : undefined
  const below = child === undefined ? undefined : tree.threads.get(child)?.view.items
  return ownText(entry) + (below ?? []).map((item) => textOfEntry(item, tree)).join('\n')
}

function ownText(entry: ChatEntry): string {
  const cachedText = texts.get(entry)
  if (cachedText !== undefined) return cachedText
  const { id: _, at: __, ...rest } = entry as unknown as Record<string, unknown> // entries are plain objects
  const text = Object.values(rest)
    .map((value) => (typeof value === 'string' ? value : (JSON.stringify(value) ?? '')))
    .join('\n')
    .slice(0, MAX_CHARS)
    .toLowerCase()
  texts.set(entry, text)
  return text
}

/** The search field, with buttons for the previous and the next match. */
export function FindBar({
  find,
  isWhole,
}: {
  readonly find: Find
  /** Whether the whole thread and all its children were loaded, so that the search has seen everything. */
  readonly isWhole: boolean
}): ReactNode {
  const field = useRef<HTMLInputElement>(null)
  useEffect(() => field.current?.focus(), [])
  const { query, count, place } = find
  const result = count > 0 ? `${place + 1} of ${count}` : query.trim() === '' ? '' : 'nothing found'
  return (
    <div className="find" role="search">
      <input
        ref={field}
        className="field"
        type="search"
        aria-label="Find in this thread"
        placeholder="Find in this thread"
        value={query}
        onChange={(event) => find.setQuery(event.target.value)}
        onKeyDown={(event) => {
          if (event.key === 'Escape') find.close()
          if (event.key === 'Enter') find.move(event.shiftKey ? 1 : -1)
        }}
      />
      <span
        className="small soft num"
        role="status"
        title={
          isWhole ? undefined : 'Children and earlier parts that are not loaded are not searched.'
        }
      >
        {result}
        {!isWhole && result !== '' && ' in what was read'}
      </span>
      <button
        type="button"
        className="btn quiet icon tiny"
        aria-label="The place before"
        title="Previous match (Enter)"
        disabled={count === 0}
        onClick={() => find.move(-1)}
      >
        <ChevronUp size={14} aria-hidden />
      </button>
      <button
        type="button"
        className="btn quiet icon tiny"
        aria-label="The next place"
        title="Next match (Shift Enter)"
        disabled={count === 0}
        onClick={() => find.move(1)}
      >
        <ChevronDown size={14} aria-hidden />
      </button>
      <button
        type="button"
        className="btn quiet icon tiny"
        aria-label="Close the search"
        title="Close (Escape)"
        onClick={find.close}
      >
        <X size={14} aria-hidden />
      </button>
    </div>
  )
}
