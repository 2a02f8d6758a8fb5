import { useMemo, type ReactNode } from 'react'
import { Cost } from '../../parts/basics.tsx'
import { countText, duration, line } from '../../parts/format.ts'
import { To } from '../../parts/link.tsx'
import { Dot, stateOf } from '../../parts/status.tsx'
import type { ThreadAddress } from '../../state/address.ts'
import type { ShownThread, TreeState } from '../../state/tree.ts'

interface Branch {
  readonly thread: ShownThread
  readonly depth: number
  readonly name: string
  readonly isBackground: boolean
}

/** The thread and its descendants with what each has used; a row opens the thread as a page. */
export function TreeView({
  tree,
  address,
}: {
  readonly tree: TreeState
  readonly address: ThreadAddress
}): ReactNode {
  const branches = useMemo(() => branchesOf(tree), [tree])
  return (
    <div className="tree-view" tabIndex={0} role="region" aria-label="Tree of threads">
      <table>
        <thead>
          <tr>
            <th scope="col">Thread</th>
            <th scope="col">State</th>
            <th scope="col">Turns</th>
            <th scope="col">Tokens</th>
            <th scope="col">Cost</th>
            <th scope="col">Time</th>
          </tr>
        </thead>
        <tbody>
          {branches.map(({ thread, depth, name, isBackground }) => {
            const { view, threadId } = thread
            const [shape, word] = stateOf(view.status, {
              waiting: view.waiting.filter((wait) => wait.for === 'person').length,
            })
            return (
              <tr key={threadId}>
                <th scope="row" style={{ paddingLeft: `${depth * 20 + 4}px` }}>
                  {depth > 0 && (
                    <span className="faint" aria-hidden>
                      {isBackground ? '┈ ' : '└ '}
                    </span>
                  )}
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
                  <Dot shape={shape} />{' '}
                  {view.statusText === undefined ? word : line(view.statusText, 60)}
                </td>
                <td className="num">{view.usage.turns}</td>
                <td className="num">
                  {countText(view.usage.inputTokens + view.usage.outputTokens)}
                </td>
                <td>
                  <Cost usd={view.usage.costUsd} />
                </td>
                <td className="num">
                  {duration(Date.parse(view.updatedAt) - Date.parse(view.createdAt))}
                </td>
              </tr>
            )
          })}
        </tbody>
      </table>
      {branches.length === 1 && (
        <p className="soft">
          This thread has no children. A child appears here as soon as an agent starts one.
        </p>
      )}
    </div>
  )
}

function branchesOf(tree: TreeState): readonly Branch[] {
  const rows: Branch[] = []
  const visit = (threadId: string, depth: number, name: string, isBackground: boolean): void => {
    const thread = tree.threads.get(threadId)
    if (!thread || rows.some((row) => row.thread === thread)) return
    rows.push({ thread, depth, name, isBackground })
    for (const child of thread.view.children)
      visit(child.threadId, depth + 1, child.name, thread.facts.background.has(child.threadId))
  }
  const root = tree.threads.get(tree.rootId)
  if (root) visit(tree.rootId, 0, root.view.agent, false)
  return rows
}
