import { useVirtualizer, type Virtualizer } from '@tanstack/react-virtual'
import {
  useCallback,
  useEffect,
  useLayoutEffect,
  useMemo,
  useRef,
  useState,
  type ReactNode,
  type RefObject,
} from 'react'
import type { ViewMessage } from '@skein/runtime/view'
import { ArrowDown } from '../../icons/lucide.ts'
import { Empty } from '../../parts/placeholder.tsx'
import { plural } from '../../parts/format.ts'
import { useKeys } from '../../state/keys.ts'
import type { ShownThread, TreeState } from '../../state/tree.ts'
import { Announcer } from './announcer.tsx'
import { ChatEntryRow, entryKey, type ChatEntry } from './entry.tsx'
import { FindBar, useFind } from './find.tsx'
import { ForkDialog } from './fork.tsx'
import { useBranches } from './branches.tsx'

interface ChatProps {
  readonly thread: ShownThread
  readonly tree: TreeState
  readonly selected: string | undefined
  readonly onSelect: (id: string | undefined) => void
}

/** If less than this is left below, the conversation counts as scrolled to its end. */
const NEAR_PX = 80
const PADDING_PX = 20
/** The number of rows that are rendered above and below the visible ones. */
const OVERSCAN = 4

/** The conversation: messages, calls and child threads in the order in which they happen. */
export function Chat({ thread, tree, selected, onSelect }: ChatProps): ReactNode {
  const [isSilentShown, setSilentShown] = useState(false)
  const entries = useEntries(thread, isSilentShown)
  const scroll = useRef<HTMLDivElement>(null)
  const { open, toggle } = useOpen()
  const branches = useBranches(thread)
  const [forked, setForked] = useState<ViewMessage>()
  const getItemKey = useCallback((index: number) => entryKey(entries[index]!), [entries])
  const rows = useVirtualizer({
    count: entries.length,
    getScrollElement: () => scroll.current,
    estimateSize: (index) => usualHeight(entries[index]!),
    getItemKey,
    overscan: OVERSCAN,
    paddingStart: PADDING_PX,
    paddingEnd: 28,
  })
  const height = rows.getTotalSize()
  const { toEnd, leaveEnd, onScroll, isBehind } = useEnd(scroll, height, thread.view.seq)
  usePlace(scroll, entries, rows)
  const find = useFind(entries, tree, (index) => {
    leaveEnd()
    rows.scrollToIndex(index, { align: 'center' })
  })
  useKeys([{ keys: '.', does: 'Jump to now', run: toEnd }])
  const select = useCallback((id: string) => onSelect(id), [onSelect])
  const isRunning = thread.view.status === 'running'
  return (
    <div className="log-box">
      {thread.facts.silent.length > 0 && (
        <label className="silent-toggle small soft">
          <input
            type="checkbox"
            checked={isSilentShown}
            onChange={(event) => setSilentShown(event.target.checked)}
          />{' '}
          {plural(thread.facts.silent.length, 'message')} only models see
        </label>
      )}
      {find && <FindBar find={find} isWhole={tree.isWhole && thread.earlier === 0} />}
      <div
        className="log"
        ref={scroll}
        onScroll={onScroll}
        tabIndex={0}
        role="region"
        aria-label="Conversation"
        aria-busy={isRunning}
      >
        {entries.length === 0 && (
          <Empty title="No messages yet">
            <p>Write the first message below.</p>
          </Empty>
        )}
        {tree.isLoaded && thread.earlier > 0 && (
          <p className="earlier small soft">
            {plural(thread.earlier, 'earlier event')} of this thread{' '}
            {thread.earlier === 1 ? 'is' : 'are'} not shown.{' '}
            <button type="button" className="link" onClick={tree.read.earlier}>
              Read the whole thread
            </button>
          </p>
        )}
        <div className="log-rows" style={{ height }}>
          {rows.getVirtualItems().map(({ index, start, key }) => (
            <div
              key={key}
              data-index={index}
              ref={rows.measureElement}
              className={`log-row ${find?.index === index ? 'found' : ''}`}
              style={{ transform: `translateY(${start}px)` }}
            >
              <ChatEntryRow
                entry={entries[index]!}
                thread={thread}
                tree={tree}
                open={open}
                toggle={toggle}
                selected={selected}
                select={select}
                depth={0}
                branches={branches}
                onFork={setForked}
              />
            </div>
          ))}
        </div>
      </div>
      {isBehind && (
        <button type="button" className="btn tiny to-now" onClick={toEnd}>
          <ArrowDown size={13} aria-hidden /> Jump to now <kbd>.</kbd>
        </button>
      )}
      {forked && (
        <ForkDialog thread={thread} message={forked} onClose={() => setForked(undefined)} />
      )}
      {!thread.isPast && <Announcer thread={thread} />}
    </div>
  )
}

/** Returns the usual height of an entry. With a good estimate, the browser need not lay the list out twice. */
function usualHeight(entry: ChatEntry): number {
  if (entry.type === 'call') return entry.childId === undefined ? 30 : 60
  return entry.type === 'message' ? 50 : 60
}

/** Keeps the end of the conversation visible until the person scrolls back. */
function useEnd(
  scroll: RefObject<HTMLDivElement | null>,
  height: number,
  seq: number,
): {
  readonly toEnd: () => void
  /** Stops following the end, because another place will be shown. */
  readonly leaveEnd: () => void
  readonly onScroll: () => void
  readonly isBehind: boolean
} {
  const isAtEnd = useRef(true)
  const last = useRef({ scrollTop: 0, scrollHeight: 0 })
  const [isBehind, setBehind] = useState(false)
  const toEnd = useCallback(() => {
    isAtEnd.current = true
    setBehind(false)
    const box = scroll.current
    if (box) box.scrollTop = box.scrollHeight
  }, [scroll])
  useEffect(() => {
    if (isAtEnd.current) toEnd()
    else setBehind(true)
  }, [height, seq, toEnd])
  const onScroll = (): void => {
    const box = scroll.current
    if (!box) return
    const { scrollTop, scrollHeight, clientHeight } = box
    const before = last.current
    last.current = { scrollTop, scrollHeight }
    if (scrollHeight - scrollTop - clientHeight < NEAR_PX) {
      isAtEnd.current = true
      setBehind(false)
    } else if (scrollTop < before.scrollTop && scrollHeight === before.scrollHeight)
      // Only real scrolling counts: measuring a row moves the position too, but it also changes the height.
      isAtEnd.current = false
  }
  const leaveEnd = (): void => {
    isAtEnd.current = false
  }
  return { toEnd, leaveEnd, onScroll, isBehind }
}

/** Keeps the visible entries in place when earlier entries are inserted above them. */
function usePlace(
  scroll: RefObject<HTMLDivElement | null>,
  entries: readonly ChatEntry[],
  rows: Virtualizer<HTMLDivElement, Element>,
): void {
  const first = useRef<string>(undefined)
  useLayoutEffect(() => {
    const before = first.current
    first.current = entries[0] && entryKey(entries[0])
    const box = scroll.current
    if (before === undefined || before === first.current || !box) return
    const index = entries.findIndex((entry) => entryKey(entry) === before)
    const [offset = 0] = (index > 0 && rows.getOffsetForIndex(index, 'start')) || []
    if (offset > 0) box.scrollTop += offset - PADDING_PX
  }, [scroll, entries, rows])
}

function useOpen(): { open: ReadonlySet<string>; toggle: (id: string) => void } {
  const [open, setOpen] = useState<ReadonlySet<string>>(new Set())
  const toggle = useCallback((id: string) => {
    setOpen((before) => {
      const next = new Set(before)
      if (!next.delete(id)) next.add(id)
      return next
    })
  }, [])
  return { open, toggle }
}

function useEntries(thread: ShownThread, isSilentShown: boolean): readonly ChatEntry[] {
  const { view, facts } = thread
  const hasDraft = facts.draft !== undefined
  const hasEnding = view.result !== undefined && view.result.outcome !== 'completed'
  return useMemo(() => {
    const silent = isSilentShown
      ? facts.silent.map(({ id, at, text }) => ({ type: 'silent' as const, id, at, text }))
      : []
    const childIds = new Set(view.items.map((item) => 'childId' in item && item.childId))
    const children = view.children
      .filter(({ threadId }) => !childIds.has(threadId))
      .map(({ threadId: id, createdAt: at }) => ({ type: 'child' as const, id, at }))
    const others: readonly ChatEntry[] = [...silent, ...children]
    const entries: readonly ChatEntry[] =
      others.length === 0 || thread.earlier > 0
        ? view.items
        : [...view.items, ...others].toSorted((a, b) => timeOf(a).localeCompare(timeOf(b)))
    return [
      ...entries,
      ...(hasDraft ? [{ type: 'draft' as const }] : []),
      ...(hasEnding ? [{ type: 'ending' as const }] : []),
    ]
  }, [view.items, view.children, thread.earlier, facts.silent, isSilentShown, hasDraft, hasEnding])
}

function timeOf(entry: ChatEntry): string {
  return 'at' in entry ? entry.at : ''
}
