import { useCallback, useMemo } from 'react'
import { useLocation, useSearch } from 'wouter'

/** The ways to look at a thread. */
export const VIEWS = ['chat', 'tree', 'timeline', 'events'] as const
/** One of the ways to look at a thread. */
export type View = (typeof VIEWS)[number]

/**
 * The address (URL) of the page. It determines, together with the data of the server, everything that the page shows.
 */
export type Address =
  | {
      readonly screen: 'threads'
      readonly query?: string
      /** Whether the form for a new thread is open; a narrow window shows either the form or the list. */
      readonly isNew?: boolean
    }
  | {
      readonly screen: 'thread'
      readonly threadId: string
      readonly query?: string
      readonly view?: View
      /** The number of an event: the thread is shown as it was after that event. */
      readonly at?: number
      /** The selected call, message or child, whose details are shown. */
      readonly select?: string
      /** The tab of the details. */
      readonly tab?: string
      /** The thread to compare with. */
      readonly with?: string
    }
  | { readonly screen: 'inbox'; readonly item?: string }
  | { readonly screen: 'agents' }
  | { readonly screen: 'agent'; readonly agent: string }
  | { readonly screen: 'api'; readonly operation?: string }
  | { readonly screen: 'unknown'; readonly path: string }

/** The address of a thread. */
export type ThreadAddress = Extract<Address, { screen: 'thread' }>

/** Reads the address of the page; `path` is relative to the page's base. */
export function readAddress(path: string, search: string): Address {
  const [first = '', second, ...rest] = path.split('/').filter(Boolean).map(decoded)
  const query = new URLSearchParams(search)
  const text = (name: string): string | undefined => query.get(name) ?? undefined
  if (rest.length > 0) return { screen: 'unknown', path }
  switch (first) {
    case '':
    case 'threads': {
      if (second === undefined)
        return clean({ screen: 'threads', query: text('q'), isNew: query.has('new') || undefined })
      const at = Number(query.get('at') ?? Number.NaN)
      return clean({
        screen: 'thread',
        threadId: second,
        query: text('q'),
        view: VIEWS.find((view) => view === query.get('view')),
        at: Number.isInteger(at) && at > 0 ? at : undefined,
        select: text('select'),
        tab: text('tab'),
        with: text('with'),
      })
    }
    case 'inbox':
      return clean({ screen: 'inbox', item: second })
    case 'agents':
      return second === undefined ? { screen: 'agents' } : { screen: 'agent', agent: second }
    case 'api':
      return clean({ screen: 'api', operation: second })
    default:
      return { screen: 'unknown', path }
  }
}

/** Writes an address; `readAddress` reads it again. */
export function writeAddress(address: Address): string {
  switch (address.screen) {
    case 'threads':
      return `/threads${search({ q: address.query, new: address.isNew ? 1 : undefined })}`
    case 'thread': {
      const { threadId, query: q, view, at, select, tab, with: other } = address
      const shown = view === 'chat' ? undefined : view
      return `/threads/${encodeURIComponent(threadId)}${search({ q, view: shown, at, select, tab, with: other })}`
    }
    case 'inbox':
      return address.item === undefined ? '/inbox' : `/inbox/${encodeURIComponent(address.item)}`
    case 'agents':
      return '/agents'
    case 'agent':
      return `/agents/${encodeURIComponent(address.agent)}`
    case 'api':
      return address.operation === undefined
        ? '/api'
        : `/api/${encodeURIComponent(address.operation)}`
    case 'unknown':
      return address.path
  }
}

/** Returns the address of the page and a function that changes it. */
export function useAddress(): readonly [Address, (next: Address, isReplaced?: boolean) => void] {
  const [path, navigate] = useLocation()
  const query = useSearch()
  const address = useMemo(() => readAddress(path, query), [path, query])
  const go = useCallback(
    (next: Address, isReplaced = false) => navigate(writeAddress(next), { replace: isReplaced }),
    [navigate],
  )
  return [address, go]
}

function search(values: Readonly<Record<string, string | number | undefined>>): string {
  const query = new URLSearchParams()
  for (const [name, value] of Object.entries(values))
    if (value !== undefined && value !== '') query.set(name, String(value))
  return query.size > 0 ? `?${query}` : ''
}

function decoded(segment: string): string {
  try {
    return decodeURIComponent(segment)
  } catch {
    return segment // not an address that we wrote
  }
}

/** Removes fields that are undefined, so that equal addresses have the same fields. */
function clean<T extends Address>(address: T): T {
  return Object.fromEntries(Object.entries(address).filter(([, value]) => value !== undefined)) as T // only absent members were removed
}
