import { useEffect, useMemo, useRef, type ReactNode } from 'react'
import type { WaitingItem } from '@skein/runtime'
import { Approval } from '../../parts/approval.tsx'
import { AllGrants } from '../../parts/grants.tsx'
import { Empty, ErrorBox, Skeleton, Time } from '../../parts/basics.tsx'
import { line, plural } from '../../parts/format.ts'
import { To } from '../../parts/link.tsx'
import { Dot } from '../../parts/status.tsx'
import { useAddress } from '../../state/address.ts'
import { useKeys } from '../../state/keys.ts'
import { useStore } from '../../state/store.ts'
import { useStudio, useTree } from '../../state/studio.ts'
import { useTitle } from '../../state/title.ts'
import { sentence } from '../../parts/ask-facts.tsx'

/** Everything that waits for a person, in all threads and their descendants. */
export function InboxScreen({ item: chosen }: { readonly item?: string }): ReactNode {
  const { lists } = useStudio()
  const [, go] = useAddress()
  const { items: waiting, isLoaded, error } = useStore(lists.inbox)
  const items = useStable(waiting, chosen)
  const index = Math.max(
    0,
    items.findIndex(({ interruptId }) => interruptId === chosen),
  )
  const current = items[index]
  useTitle('Inbox · Studio')
  const move = (step: number): void => {
    const next = items[Math.min(items.length - 1, Math.max(0, index + step))]
    if (next) go({ screen: 'inbox', item: next.interruptId }, true)
  }
  // The shown item stays until the person moves on, even if it was decided here or elsewhere meanwhile:
  // a key press must never decide about another item than the one that the person has read.
  useEffect(() => {
    if (current && current.interruptId !== chosen)
      go({ screen: 'inbox', item: current.interruptId }, true)
  }, [current, chosen, go])
  useKeys([
    { keys: 'j', does: 'Next decision', run: () => move(1) },
    { keys: 'k', does: 'Previous decision', run: () => move(-1) },
    {
      keys: 'Enter',
      does: 'Open the thread',
      run: () =>
        current && go({ screen: 'thread', threadId: current.threadId, select: current.toolCallId }),
    },
  ])
  if (!isLoaded && error === undefined) return <Skeleton lines={6} />
  return (
    <div className="inbox">
      <header className="inbox-head">
        <h1>Inbox</h1>
        <p className="soft">
          {waiting.length === 0
            ? 'Nothing waits for a person.'
            : `${plural(waiting.length, 'decision')} to make.`}
          {items.length > 0 && (
            <span className="keys-line">
              <kbd>j</kbd> <kbd>k</kbd> move · <kbd>Enter</kbd> opens the thread · <kbd>a</kbd>{' '}
              approve · <kbd>e</kbd> approve with changes or fill in · <kbd>d</kbd> deny
            </span>
          )}
        </p>
        <AllGrants />
        {error !== undefined && <ErrorBox error={error} retry={lists.refresh} />}
      </header>
      {items.length === 0 ? (
        <Empty title="All decided">
          <p>
            Calls that need a person, questions of tools, values that a child needs, and calls that
            a crash cut off appear here, from every thread and every child, as soon as they wait.
          </p>
        </Empty>
      ) : (
        <div className="inbox-panes">
          <ul className="inbox-list" aria-label="Decisions">
            {items.map((item) => (
              <li key={item.interruptId}>
                <To
                  className="row"
                  address={{ screen: 'inbox', item: item.interruptId }}
                  replace
                  aria-current={item === current ? 'true' : undefined}
                >
                  <Dot shape={waiting.includes(item) ? 'wait' : 'done'} />
                  <span className="title cut">{sentence(item)}</span>
                  <Time at={item.openedAt} />
                  <span className="sub">
                    <span className="cut">{pathText(item)}</span>
                    <span>{waiting.includes(item) ? riskWord(item) : 'decided'}</span>
                  </span>
                </To>
              </li>
            ))}
          </ul>
          <div className="inbox-item">
            {current && <InboxItem key={current.interruptId} item={current} />}
          </div>
        </div>
      )}
    </div>
  )
}

/** A waiting item, with the evidence collected so far in its thread. */
function InboxItem({ item }: { readonly item: WaitingItem }): ReactNode {
  const tree = useTree(item.threadId)
  const thread = tree.threads.get(item.threadId)
  return (
    <Approval
      item={item}
      evidence={thread?.facts.evidence}
      verdicts={thread?.facts.calls.get(item.toolCallId)?.verdicts}
      hasKeys
    >
      <p className="soft">
        Asked by {pathText(item)} ·{' '}
        <To
          className="link"
          address={{ screen: 'thread', threadId: item.threadId, select: item.toolCallId }}
        >
          open the thread
        </To>
      </p>
    </Approval>
  )
}

/**
 * Keeps the items in the order in which they were first seen, the oldest first, so that they do not
 * move while a person is about to click one. The chosen item stays while the person looks at it, even
 * if somebody else has just decided it.
 */
function useStable(
  waiting: readonly WaitingItem[],
  chosen: string | undefined,
): readonly WaitingItem[] {
  const seen = useRef(new Map<string, WaitingItem>())
  const items = useMemo(() => {
    const known = new Map(waiting.map((item) => [item.interruptId, item]))
    const kept = [...seen.current.values()].flatMap((item) => {
      const now = known.get(item.interruptId)
      known.delete(item.interruptId)
      return now ?? (item.interruptId === chosen ? item : [])
    })
    return [...kept, ...known.values()]
  }, [waiting, chosen])
  useEffect(() => {
    seen.current = new Map(items.map((item) => [item.interruptId, item]))
  }, [items])
  return items
}

function pathText({ path }: WaitingItem): string {
  return path.map((name) => line(name, 40)).join(' › ')
}

function riskWord({ kind, risk }: WaitingItem): string {
  if (kind === 'in_doubt') return 'in doubt'
  if (kind === 'input') return 'question'
  if (kind === 'variables') return 'values'
  return risk === 'write_high_risk' ? 'high risk' : (risk?.replaceAll('_', ' ') ?? 'approval')
}
