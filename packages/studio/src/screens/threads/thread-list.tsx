import { useVirtualizer } from '@tanstack/react-virtual'
import { memo, useCallback, useEffect, useMemo, useRef, useState, type ReactNode } from 'react'
import type { ThreadInfo } from '@skein/runtime'
import { CheckIcon as Check, Plus, Search } from '../../icons/lucide.ts'
import { CommandLine } from '../../parts/copy.tsx'
import { Empty, Skeleton } from '../../parts/placeholder.tsx'
import { ErrorBox } from '../../parts/error-box.tsx'
import { Time } from '../../parts/time.tsx'
import { DeleteDialog } from '../../parts/delete-dialog.tsx'
import { countText, line, money } from '../../parts/format.ts'
import { Dot, STATE_WORDS, stateOf } from '../../parts/status.tsx'
import { To } from '../../parts/link.tsx'
import { useAddress, type Address } from '../../state/address.ts'
import { inOrder } from '../../state/agent-order.ts'
import { useKeys } from '../../state/keys.ts'
import { useStore } from '../../state/store.ts'
import { useMay, useStudio } from '../../state/studio.ts'
import { useResource } from '../../state/resource.ts'
import { matchesQuery, parseQuery } from './query.ts'

const ROW_PX = 57
/** The next part of the list is loaded when at most this many rows are left below the visible ones. */
const NEAR_ROWS = 30

/** All threads, the latest first, with a search. */
export function ThreadList({
  address,
}: {
  readonly address: Extract<Address, { screen: 'threads' | 'thread' }>
}): ReactNode {
  const { lists } = useStudio()
  const { items, isLoaded, isAll, error } = useStore(lists.threads)
  const [, go] = useAddress()
  const { query = '' } = address
  const { shown, isByTool } = useShown(items, query)
  const openId = address.screen === 'thread' ? address.threadId : undefined
  const [marked, setMarked] = useState<ReadonlySet<string>>()
  const [isDeleting, setDeleting] = useState(false)
  const mayWrite = useMay('threads:write')
  const mark = useCallback((id: string) => {
    setMarked((before) => {
      const next = new Set(before)
      if (!next.delete(id)) next.add(id)
      return next
    })
  }, [])
  const markedThreads = shown.filter(({ id }) => marked?.has(id))
  const scroll = useRef<HTMLDivElement>(null)
  const search = useRef<HTMLInputElement>(null)
  const rows = useVirtualizer({
    count: shown.length,
    getScrollElement: () => scroll.current,
    estimateSize: () => ROW_PX,
    getItemKey: (index) => shown[index]?.id ?? index,
    overscan: 8,
  })
  const last = rows.getVirtualItems().at(-1)?.index ?? 0
  useEffect(() => {
    if (query === '' && !isAll && last >= shown.length - NEAR_ROWS) lists.more()
  }, [lists, query, isAll, last, shown.length])
  const move = (step: number): void => {
    const index = shown.findIndex(({ id }) => id === openId)
    const next = shown[Math.min(shown.length - 1, Math.max(0, index + step))]
    if (!next) return
    rows.scrollToIndex(shown.indexOf(next))
    go({ screen: 'thread', threadId: next.id, query })
  }
  useKeys([
    { keys: 'j', does: 'Next thread', run: () => move(1) },
    { keys: 'k', does: 'Previous thread', run: () => move(-1) },
    { keys: '/', does: 'Search the threads', run: () => search.current?.focus() },
    { keys: 'n', does: 'Start a thread', run: () => go({ screen: 'threads', query, isNew: true }) },
  ])
  return (
    <section className="list" aria-label="Threads">
      {openId === undefined && <h1 className="hidden">Threads</h1>}
      <div className="list-head">
        <label className="search-field">
          <Search size={14} aria-hidden />
          <span className="hidden">Search threads</span>
          <input
            ref={search}
            type="search"
            value={query}
            placeholder="Search or filter"
            title="Words of titles and first messages, agent:, status:, tool:, cost>, after:, before:"
            onChange={(event) => go({ ...address, query: event.target.value }, true)}
            onKeyDown={(event) => event.key === 'Escape' && event.currentTarget.blur()}
          />
        </label>
        <To
          className="btn quiet icon"
          address={{ screen: 'threads', query, isNew: true }}
          aria-label="Start a thread"
          title="Start a thread (n)"
        >
          <Plus size={16} aria-hidden />
        </To>
        {mayWrite && items.length > 0 && (
          <button
            type="button"
            className="btn quiet icon"
            aria-pressed={marked !== undefined}
            aria-label="Select threads"
            title="Select threads, to delete several"
            onClick={() => setMarked(marked === undefined ? new Set() : undefined)}
          >
            <Check size={16} aria-hidden />
          </button>
        )}
      </div>
      {marked !== undefined && (
        <div className="list-marked btns">
          <button
            type="button"
            className="btn tiny"
            onClick={() => setMarked(new Set(shown.map(({ id }) => id)))}
          >
            Select all {shown.length}
          </button>
          <button
            type="button"
            className="btn tiny no"
            disabled={markedThreads.length === 0}
            onClick={() => setDeleting(true)}
          >
            Delete {markedThreads.length}…
          </button>
          <button type="button" className="btn quiet tiny" onClick={() => setMarked(undefined)}>
            Done
          </button>
        </div>
      )}
      {isDeleting && (
        <DeleteDialog
          threads={markedThreads.map(({ id, title, firstWords }) => ({
            id,
            title: title ?? firstWords ?? 'No message yet',
          }))}
          onClose={() => setDeleting(false)}
          onDeleted={() => {
            setMarked(undefined)
            if (markedThreads.some(({ id }) => id === openId)) go({ screen: 'threads', query })
          }}
        />
      )}
      <div className="list-scroll" ref={scroll} tabIndex={-1}>
        {error !== undefined && !isLoaded && <ErrorBox error={error} retry={lists.refresh} />}
        {!isLoaded && error === undefined && <Skeleton lines={8} />}
        {isLoaded && shown.length === 0 && <NoThreads query={items.length > 0 ? query : ''} />}
        {isByTool && <p className="list-note small soft">{TOOL_NOTE}</p>}
        <ul className="rows" style={{ height: rows.getTotalSize() }}>
          {rows.getVirtualItems().map(({ index, start, key }) => {
            const thread = shown[index]
            return (
              thread && (
                <ThreadRow
                  key={key}
                  thread={thread}
                  start={start}
                  query={query}
                  isSelected={thread.id === openId}
                  isMarked={marked?.has(thread.id)}
                  onMark={mark}
                />
              )
            )
          })}
        </ul>
        {isLoaded && !isAll && !isByTool && (
          <ListEnd query={query} count={items.length} more={lists.more} />
        )}
      </div>
    </section>
  )
}

/** Returns the threads that match a search. A search by tool is sent to the server, which covers all threads. */
function useShown(
  items: readonly ThreadInfo[],
  query: string,
): { readonly shown: readonly ThreadInfo[]; readonly isByTool: boolean } {
  const { client } = useStudio()
  const conditions = useMemo(() => parseQuery(query), [query])
  const { tool } = conditions
  const byTool = useResource(tool && `tool ${tool}`, () =>
    client.threads.list({ tool, parentId: null, limit: MAX_BY_TOOL }),
  )
  useEffect(() => {
    if (tool === undefined) return undefined
    const timer = setTimeout(byTool.reload, RELOAD_MS)
    return () => clearTimeout(timer)
    // `reload` is new at each render, so it is no dependency. `items` is one: a changed thread may have
    // called the tool.
  }, [items, tool])
  const matches = useMemo(() => {
    if (tool === undefined) return items.filter((thread) => matchesQuery(thread, conditions))
    const latest = new Map(items.map((thread) => [thread.id, thread]))
    return (byTool.value ?? [])
      .map((thread) => latest.get(thread.id) ?? thread)
      .filter((thread) => matchesQuery(thread, conditions))
  }, [items, conditions, tool, byTool.value])
  return { shown: matches, isByTool: tool !== undefined }
}

/** The end of a list that is loaded only in part. */
function ListEnd({
  query,
  count,
  more,
}: {
  readonly query: string
  readonly count: number
  readonly more: () => void
}): ReactNode {
  return (
    <p className="list-note small soft">
      {query === '' ? (
        'Loading older threads …'
      ) : (
        <>
          Searched the latest {count} threads.{' '}
          <button type="button" className="link" onClick={more}>
            Search older ones
          </button>
        </>
      )}
    </p>
  )
}

const TOOL_NOTE = 'Threads that have called this tool, themselves or through a child.'
/** How many threads are shown for a tool at most, and how long after a change they are loaded again. */
const MAX_BY_TOOL = 1000
const RELOAD_MS = 1000

function NoThreads({ query }: { readonly query: string }): ReactNode {
  const { client } = useStudio()
  const agents = useResource('agents', () => client.agents.list()).value
  const agent = inOrder(agents ?? [])[0]
  const { status } = parseQuery(query)
  const isUnknown = status !== undefined && !STATE_WORDS.some((word) => word.startsWith(status))
  if (query !== '')
    return (
      <Empty title="No thread matches">
        {isUnknown && (
          <p>
            No state is called “{line(status, 40)}”: there are {STATE_WORDS.join(', ')}.
          </p>
        )}
        <p>
          The search covers titles, first messages and agents. Filters: <code>agent:support</code>,{' '}
          <code>status:waiting</code>, <code>tool:refund</code>, <code>cost&gt;0.1</code>,{' '}
          <code>after:2026-11-01</code>.
        </p>
      </Empty>
    )
  return (
    <Empty title="No threads yet">
      <p>Choose an agent and write to it, or start from a terminal:</p>
      {agent && <CommandLine text={`npx skein run ${line(agent.name, 60)} "Hello"`} />}
    </Empty>
  )
}

const ThreadRow = memo(function ThreadRow({
  thread,
  start,
  query,
  isSelected,
  isMarked,
  onMark,
}: {
  readonly thread: ThreadInfo
  readonly start: number
  readonly query: string
  readonly isSelected: boolean
  /** Undefined unless threads are being selected. */
  readonly isMarked: boolean | undefined
  readonly onMark: (id: string) => void
}): ReactNode {
  const { id, title, agent, lifecycle, updatedAt, tree } = thread
  const [shape, words] = stateOf({ lifecycle, waiting: tree.waiting, isNew: thread.seq <= 2 })
  return (
    <li
      className={isMarked === undefined ? '' : 'can-mark'}
      style={{ transform: `translateY(${start}px)` }}
    >
      {isMarked !== undefined && (
        <input
          type="checkbox"
          aria-label={`Select ${line(title ?? thread.firstWords ?? 'No message yet', 60)}`}
          checked={isMarked}
          onChange={() => onMark(id)}
        />
      )}
      <To
        className="row"
        address={{ screen: 'thread', threadId: id, query }}
        aria-current={isSelected ? 'true' : undefined}
      >
        <Dot shape={shape} />
        <span className="title cut">
          {line(title ?? thread.firstWords ?? 'No message yet', 120)}
        </span>
        <Time at={updatedAt} />
        <span className="sub">
          <span>{line(agent, 40)}</span>
          <span className={`cut ${shape === 'fail' ? 'bad' : shape === 'wait' ? 'waits' : ''}`}>
            {words}
          </span>
          <span className="num">
            {countText(tree.tokens)} tok
            {tree.costUsd !== null && tree.costUsd > 0 && ` · ${money(tree.costUsd)}`}
          </span>
        </span>
      </To>
    </li>
  )
})
