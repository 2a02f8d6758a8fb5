import { useVirtualizer } from '@tanstack/react-virtual'
import { type CSSProperties, type ReactNode, useMemo, useRef, useState } from 'react'
import type { ThreadInfo } from '@skein/runtime'
import { ChevronDown, ChevronRight } from '../../icons/lucide.ts'
import { Cost } from '../../parts/cost.tsx'
import { countText, duration, line, plural } from '../../parts/format.ts'
import { To } from '../../parts/link.tsx'
import { Dot, type ShownState, stateOf, stateOfChild } from '../../parts/status.tsx'
import type { ThreadAddress } from '../../state/address.ts'
import { modelTime } from '../../state/facts.ts'
import { peopleWaitedFor, type ShownThread, type TreeState } from '../../state/tree.ts'

/** One thread of the tree; its facts come from its log or, if that was not loaded, from the list of threads. */
interface Branch {
  readonly threadId: string
  readonly depth: number
  readonly name: string
  readonly isBackground: boolean
  readonly state: ShownState
  /** The number of turns; unknown until the log of the thread was loaded. */
  readonly turns?: number
  readonly tokens: number
  readonly costUsd: number | null
  /** How long models have worked in the thread; unknown until its log was loaded. */
  readonly modelMs?: number
  /** How many threads are below it. */
  readonly below: number
}

const ROW_PX = 29

/** A table of the thread and its descendants with what each has used; a click on a row opens that thread. */
export function TreeView({
  tree,
  address,
}: {
  readonly tree: TreeState
  readonly address: ThreadAddress
}): ReactNode {
  const scroll = useRef<HTMLDivElement>(null)
  const [closed, setClosed] = useState<ReadonlySet<string>>(new Set())
  const branches = useMemo(() => branchesOf(tree, closed), [tree, closed])
  const rows = useVirtualizer({
    count: branches.length,
    getScrollElement: () => scroll.current,
    estimateSize: () => ROW_PX,
    overscan: 12,
  })
  const toggle = (id: string): void => {
    const next = new Set(closed)
    if (!next.delete(id)) next.add(id)
    setClosed(next)
  }
  const visible = rows.getVirtualItems()
  const [first, last] = [visible[0]?.start ?? 0, visible.at(-1)?.end ?? 0]
  return (
    <div className="tree-view" ref={scroll} tabIndex={0} role="region" aria-label="Tree of threads">
      <table aria-rowcount={branches.length + 1}>
        <thead>
          <tr>
            <th scope="col">Thread</th>
            <th scope="col">State</th>
            <th scope="col">Turns</th>
            <th scope="col">Tokens</th>
            <th scope="col">Cost</th>
            <th scope="col" title="How long models have worked in the thread itself">
              Model time
            </th>
          </tr>
        </thead>
        <tbody>
          {first > 0 && <tr className="gap" style={{ height: first }} />}
          {visible.map(({ index }) => {
            const branch = branches[index]!
            return (
              <BranchRow
                key={branch.threadId}
                branch={branch}
                index={index}
                measure={rows.measureElement}
                isOpen={!closed.has(branch.threadId)}
                onToggle={toggle}
                address={address}
              />
            )
          })}
          {last < rows.getTotalSize() && (
            <tr className="gap" style={{ height: rows.getTotalSize() - last }} />
          )}
        </tbody>
      </table>
      {branches[0]?.below === 0 && (
        <p className="soft">
          This thread has no children. A child appears here as soon as an agent starts one.
        </p>
      )}
    </div>
  )
}

function BranchRow({
  branch,
  index,
  measure,
  isOpen,
  onToggle,
  address,
}: {
  readonly branch: Branch
  readonly index: number
  /** Measures the row: in a narrow window the words of its state take two lines. */
  readonly measure: (row: HTMLTableRowElement | null) => void
  readonly isOpen: boolean
  readonly onToggle: (id: string) => void
  readonly address: ThreadAddress
}): ReactNode {
  const { threadId, depth, name, isBackground } = branch
  const [shape, words] = stateOf(branch.state)
  const Icon = isOpen ? ChevronDown : ChevronRight
  return (
    <tr ref={measure} data-index={index} aria-rowindex={index + 2}>
      <th scope="row" style={{ '--depth': Math.min(depth, 10) } as CSSProperties}>
        {branch.below > 0 ? (
          <button
            type="button"
            className="btn quiet icon tiny"
            aria-expanded={isOpen}
            aria-label={`${isOpen ? 'Close' : 'Open'} ${plural(branch.below, 'thread')} below ${line(name, 40)}`}
            onClick={() => onToggle(threadId)}
          >
            <Icon size={13} aria-hidden />
          </button>
        ) : (
          <span className="faint branch-mark" aria-hidden>
            {depth === 0 ? '' : isBackground ? '┈' : '└'}
          </span>
        )}{' '}
        <To
          className={depth === 0 ? '' : 'link'}
          address={{ screen: 'thread', threadId, query: address.query }}
          aria-current={threadId === address.threadId ? 'page' : undefined}
        >
          {line(name, 60)}
        </To>
        {isBackground && <span className="soft small"> background</span>}
      </th>
      <td>
        <Dot shape={shape} /> {words}
      </td>
      <td className="num">{branch.turns ?? ''}</td>
      <td className="num">{countText(branch.tokens)}</td>
      <td>
        <Cost usd={branch.costUsd} />
      </td>
      <td className="num">{branch.modelMs === undefined ? '' : duration(branch.modelMs)}</td>
    </tr>
  )
}

interface Kin {
  readonly id: string
  readonly name: string
  readonly isBackground: boolean
  /** The state that the parent's log has, if the child is over: its own log may not be loaded. */
  readonly over?: Pick<ShownState, 'lifecycle' | 'outcome'>
}

/** Returns the rows in order, each thread before its children. Rows below a collapsed row are left out. */
function branchesOf(tree: TreeState, closed: ReadonlySet<string>): readonly Branch[] {
  const siblingsOf = new Map<string | null, ThreadInfo[]>()
  for (const info of tree.below.values()) {
    const siblings = siblingsOf.get(info.parentId)
    if (siblings) siblings.push(info)
    else siblingsOf.set(info.parentId, [info])
  }
  const ids = new Set<string>()
  const rows: Branch[] = []
  const visit = (
    { id, name, isBackground, over }: Kin,
    depth: number,
    isShown: boolean,
  ): number => {
    const [thread, info] = [tree.threads.get(id), tree.below.get(id)]
    if ((!thread && !info) || ids.has(id)) return 0
    ids.add(id)
    const own = rowOf(id, thread, info)
    const state = { ...own.state, ...over }
    const row: Branch = { ...own, state, name, isBackground, depth, below: 0 }
    const place = rows.length
    if (isShown) rows.push(row)
    let below = 0
    for (const child of kinOf(thread, siblingsOf.get(id) ?? []))
      below += visit(child, depth + 1, isShown && !closed.has(id))
    if (isShown) rows[place] = { ...row, below }
    return below + 1
  }
  const root = tree.threads.get(tree.rootId)
  if (root) visit({ id: tree.rootId, name: root.view.agent, isBackground: false }, 0, true)
  return rows
}

/**
 * Returns the children of a thread: first those in its log, with their names, then those only in the list of threads.
 */
function kinOf(thread: ShownThread | undefined, listed: readonly ThreadInfo[]): readonly Kin[] {
  const kin = (thread?.view.children ?? []).map(({ threadId: id, name, status }) => ({
    id,
    name,
    over: status === 'completed' || status === 'failed' ? stateOfChild(status) : undefined,
    isBackground: thread!.facts.background.has(id),
  }))
  const ids = new Set(kin.map(({ id }) => id))
  const others = listed.filter(({ id }) => !ids.has(id))
  return [...kin, ...others.map(({ id, agent: name }) => ({ id, name, isBackground: false }))]
}

function rowOf(
  threadId: string,
  thread: ShownThread | undefined,
  info: ThreadInfo | undefined,
): Omit<Branch, 'name' | 'isBackground' | 'depth' | 'below'> {
  if (!thread)
    return {
      threadId,
      state: { lifecycle: info!.lifecycle, waiting: info!.waiting },
      tokens: info!.tokens,
      costUsd: info!.costUsd,
    }
  const { status, statusText, result, usage } = thread.view
  return {
    threadId,
    state: {
      lifecycle: status,
      outcome: result?.outcome,
      waiting: peopleWaitedFor(thread),
      text: statusText,
    },
    turns: usage.turns,
    tokens: usage.inputTokens + usage.outputTokens,
    costUsd: usage.costUsd,
    modelMs: modelTime(thread.facts),
  }
}
