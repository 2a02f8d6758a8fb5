import { lazy, Suspense, useCallback, useEffect, useMemo, type ReactNode } from 'react'
import { ErrorBox } from '../../parts/error-box.tsx'
import { Skeleton } from '../../parts/placeholder.tsx'
import { line } from '../../parts/format.ts'
import { To } from '../../parts/link.tsx'
import { Split } from '../../parts/split.tsx'
import { useAddress, type ThreadAddress } from '../../state/address.ts'
import { useKeys } from '../../state/keys.ts'
import { useStore } from '../../state/store.ts'
import { useStudio, useTree } from '../../state/studio.ts'
import { timeAt, treeAt, type TreeState } from '../../state/tree.ts'
import { useTitle } from '../../state/title.ts'
import { DetailPane } from '../detail/detail-pane.tsx'
import { Chat } from './chat.tsx'
import { Composer } from './composer.tsx'
import { EventsView } from './events-view.tsx'
import { Scrubber } from './scrubber.tsx'
import { ThreadHeader } from './thread-head.tsx'
import { TreeView } from './tree-view.tsx'

const readDiff = () => import('./diff-view.tsx')
const DiffView = lazy(async () => ({ default: (await readDiff()).DiffView }))
const readTimeline = () => import('../timeline/timeline-view.tsx')
const TimelineView = lazy(async () => ({ default: (await readTimeline()).TimelineView }))

/** The screen of one thread: its header, one of its views, and the details of the selection. */
export function ThreadScreen({ address }: { readonly address: ThreadAddress }): ReactNode {
  const { threadId, at, view = 'chat' } = address
  const { lists } = useStudio()
  const [, go] = useAddress()
  const treeState = useTree(threadId)
  const live = treeState.threads.get(threadId)
  const isPast = at !== undefined && at <= (live?.view.seq ?? 0)
  const tree = useMemo(
    () => (at === undefined ? treeState : treeAt(treeState, at)),
    // New events do not change an earlier state, so it is computed again only when more old events were loaded.
    [isPast ? `${at} ${treeState.isLoaded} ${treeState.isWhole}` : treeState],
  )
  const thread = tree.threads.get(threadId)
  useDescendants(treeState, at !== undefined || view === 'timeline')
  const info = useStore(lists.threads).items.find(({ id }) => id === threadId)
  const title = thread ? titleOf(thread.view, info) : 'Thread'
  useTitle(`${title} · Studio`)
  const select = useCallback(
    (id: string | undefined) => {
      const { select: _, ...rest } = address
      go(id === undefined ? rest : { ...rest, select: id }, true)
    },
    [address, go],
  )
  useKeys([
    { keys: 'c', does: 'Chat', run: () => go({ ...address, view: 'chat' }) },
    { keys: 't', does: 'Tree of children', run: () => go({ ...address, view: 'tree' }) },
    { keys: 'l', does: 'Timeline', run: () => go({ ...address, view: 'timeline' }) },
    {
      keys: 'h',
      does: at === undefined ? 'Look back in time' : 'Back to now',
      run: () => go({ ...address, at: at === undefined ? live?.view.seq : undefined }, true),
    },
    { keys: 'Escape', does: 'Close the details', run: () => select(undefined) },
  ])
  if (tree.error !== undefined && !thread)
    return (
      <div className="page">
        <h1 className="hidden">Thread</h1>
        {isNotFound(tree.error) ? (
          <>
            <ErrorBox error={tree.error} />
            <p className="pad">
              <To className="link" address={{ screen: 'threads' }}>
                All threads
              </To>
            </p>
          </>
        ) : (
          <ErrorBox error={tree.error} retry={() => location.reload()} />
        )}
      </div>
    )
  if (!thread || !live) return <Skeleton lines={6} />
  const body = (
    <div className="thread">
      <ThreadHeader thread={thread} tree={tree} title={title} address={address} />
      {at !== undefined && <Scrubber live={live} at={at} address={address} />}
      {address.with !== undefined ? (
        <Suspense fallback={<Skeleton lines={6} />}>
          <DiffView key={address.with} tree={tree} otherId={address.with} address={address} />
        </Suspense>
      ) : view === 'timeline' ? (
        <Suspense fallback={<Skeleton lines={6} />}>
          <TimelineView
            tree={tree}
            until={at === undefined ? undefined : timeAt(live.events, at)}
            selected={address.select}
            onSelect={select}
          />
        </Suspense>
      ) : view === 'tree' ? (
        <TreeView tree={tree} address={address} />
      ) : view === 'events' ? (
        <EventsView thread={thread} address={address} onSelect={select} />
      ) : (
        <Chat thread={thread} tree={tree} selected={address.select} onSelect={select} />
      )}
      <Composer thread={thread} isPast={at !== undefined} />
    </div>
  )
  if (address.select === undefined) return body
  return (
    <Split
      name="detail"
      label="the details"
      side="end"
      initial={410}
      max={760}
      fixed={
        <DetailPane
          tree={tree}
          thread={thread}
          address={address}
          onClose={() => select(undefined)}
        />
      }
    >
      {body}
    </Split>
  )
}

/**
 * Loads the descendants that are needed, if there are too many to load them all: those that
 * wait for a person and, for a view that shows their events, all.
 */
function useDescendants(tree: TreeState, areAllWanted: boolean): void {
  const { lists } = useStudio()
  const { items } = useStore(lists.inbox)
  const { read, below, isLoaded } = tree
  useEffect(() => {
    if (areAllWanted && isLoaded) read.all()
  }, [read, areAllWanted, isLoaded, below.size])
  useEffect(() => {
    for (const { threadId } of items)
      for (let id: string | null | undefined = threadId; id; id = below.get(id)?.parentId)
        if (below.has(id)) read.thread(id)
  }, [read, items, below])
}

/** Whether another try would end in the same way. */
function isNotFound(error: unknown): boolean {
  return (error as { readonly code?: unknown }).code === 'THREAD_NOT_FOUND'
}

function titleOf(
  view: {
    readonly title?: string
    readonly items: readonly { readonly type: string }[]
    readonly agent: string
  },
  info: { readonly title: string | null; readonly firstWords?: string | null } | undefined,
): string {
  const first = view.items.find((item) => item.type === 'message') as { text?: string } | undefined
  return line(info?.title ?? view.title ?? info?.firstWords ?? first?.text ?? view.agent, 120)
}
