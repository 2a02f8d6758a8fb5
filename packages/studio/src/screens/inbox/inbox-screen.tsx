import { useEffect, useMemo, useRef, type ReactNode } from 'react'
import { canonicalJson } from '@skein/base'
import type { ThreadInfo, WaitingItem } from '@skein/runtime'
import type { ViewCall } from '@skein/runtime/view'
import { Approval } from '../../parts/approval.tsx'
import { AllGrants } from '../../parts/grants.tsx'
import { Empty, Skeleton } from '../../parts/placeholder.tsx'
import { ErrorBox } from '../../parts/error-box.tsx'
import { Time } from '../../parts/time.tsx'
import { line, plural } from '../../parts/format.ts'
import { To } from '../../parts/link.tsx'
import { Dot } from '../../parts/status.tsx'
import { useAddress } from '../../state/address.ts'
import { useKeys } from '../../state/keys.ts'
import { useStore } from '../../state/store.ts'
import { useResource } from '../../state/resource.ts'
import { useStudio, useTree } from '../../state/studio.ts'
import { isCallOver, type ShownThread } from '../../state/tree.ts'
import { useTitle } from '../../state/title.ts'
import { sentence } from '../../parts/ask-text.ts'

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
              <kbd>e</kbd> <kbd>d</kbd> move to the buttons
            </span>
          )}
        </p>
        <AllGrants />
        {error !== undefined && <ErrorBox error={error} retry={lists.refresh} />}
      </header>
      {items.length === 0 ? (
        <Empty title="Nothing to decide">
          <p>
            Calls that need an approval, questions from tools, values that a child needs, and calls
            whose outcome is unknown appear here as soon as they wait, from every thread and child.
          </p>
        </Empty>
      ) : (
        <div className="inbox-panes">
          <ul className="inbox-list" aria-label="Decisions">
            {items.map((item) => (
              <InboxRow
                key={item.interruptId}
                item={item}
                isCurrent={item === current}
                isWaiting={waiting.includes(item)}
              />
            ))}
          </ul>
          <div className="inbox-item">
            {current && (
              <InboxItem
                key={current.interruptId}
                item={current}
                isWaiting={waiting.includes(current)}
                others={waiting.filter(
                  (one) =>
                    one.interruptId !== current.interruptId &&
                    sameCallKey(one) === sameCallKey(current),
                )}
              />
            )}
          </div>
        </div>
      )}
    </div>
  )
}

/** A row of the list: what would happen, in which conversation and for whom. */
function InboxRow({
  item,
  isCurrent,
  isWaiting,
}: {
  readonly item: WaitingItem
  readonly isCurrent: boolean
  readonly isWaiting: boolean
}): ReactNode {
  const root = useRoot(item)
  const about = root?.title ?? root?.firstWords
  return (
    <li>
      <To
        className="row"
        address={{ screen: 'inbox', item: item.interruptId }}
        replace
        aria-current={isCurrent ? 'true' : undefined}
      >
        <Dot shape={isWaiting ? 'wait' : 'done'} />
        <span className="title cut">{sentence(item)}</span>
        <Time at={item.openedAt} />
        <span className="sub about cut">
          {about != null && <span className="cut">“{line(about, 80)}”</span>}
        </span>
        <span className="sub">
          <span className="cut">
            {pathText(item)}
            {root?.owner != null && ` · ${line(root.owner, 40)}`} · {item.rootId.slice(-6)}
          </span>
          <span>{isWaiting ? riskWord(item) : 'no longer waiting'}</span>
        </span>
      </To>
    </li>
  )
}

/** A waiting item, with what the person wrote and the evidence that its thread has collected so far. */
function InboxItem({
  item,
  isWaiting,
  others,
}: {
  readonly item: WaitingItem
  readonly isWaiting: boolean
  /** The items that ask about the same call with the same arguments. */
  readonly others: readonly WaitingItem[]
}): ReactNode {
  const tree = useTree(item.threadId)
  const thread = tree.threads.get(item.threadId)
  const root = useRoot(item)
  const calls = useMemo(() => callsOf(thread), [thread])
  const question = thread?.view.items.findLast(
    (one) => one.type === 'message' && one.from === 'user' && one.text.trim() !== '',
  )
  return (
    <Approval
      item={item}
      evidence={thread?.facts.evidence}
      verdicts={thread?.facts.calls.get(item.toolCallId)?.verdicts}
      results={calls}
      isOver={!isWaiting}
      hasEnded={thread !== undefined && isCallOver(thread, item.toolCallId)}
      hasKeys
    >
      <p className="soft">
        Asked by {pathText(item)}
        {root?.owner != null && <> · for {line(root.owner, 60)}</>} ·{' '}
        <To
          className="link"
          address={{ screen: 'thread', threadId: item.threadId, select: item.toolCallId }}
        >
          open the thread
        </To>
      </p>
      {question?.type === 'message' && (
        <blockquote className="asked">
          <span className="soft small">
            {item.path.length > 1 ? 'The task' : 'The last message'}:{' '}
            <Time at={question.at} isAgo />
          </span>
          <p>{line(question.text, 600)}</p>
        </blockquote>
      )}
      {others.length > 0 && (
        <div className="waits same-call">
          The same call with the same arguments waits {others.length + 1} times. Each one is decided
          separately. The others:
          <ul>
            {others.map((other) => (
              <SameCall key={other.interruptId} item={other} />
            ))}
          </ul>
        </div>
      )}
    </Approval>
  )
}

/** A link to an item that asks about the same call, with the conversation from which it comes. */
function SameCall({ item }: { readonly item: WaitingItem }): ReactNode {
  const root = useRoot(item)
  const about = root?.title ?? root?.firstWords ?? pathText(item)
  return (
    <li>
      <To className="link" address={{ screen: 'inbox', item: item.interruptId }} replace>
        “{line(about, 60)}”
      </To>
      {root?.owner != null && ` · ${line(root.owner, 40)}`} · <Time at={item.openedAt} isAgo />
    </li>
  )
}

/** The outermost thread of an item: from the list of threads or, if it is not there, from the server. */
function useRoot({ rootId }: WaitingItem): ThreadInfo | undefined {
  const { client, lists } = useStudio()
  const { items, isLoaded } = useStore(lists.threads)
  const root = items.find(({ id }) => id === rootId)
  const isMissing = isLoaded && root === undefined
  const answer = useResource(isMissing ? `root ${rootId}` : undefined, () =>
    client.threads.get(rootId),
  )
  return root ?? answer.value
}

/** The calls of a thread, by their ids. */
function callsOf(thread: ShownThread | undefined): ReadonlyMap<string, ViewCall> {
  const calls = (thread?.view.items ?? []).flatMap((item) => (item.type === 'call' ? [item] : []))
  return new Map(calls.map((call) => [call.id, call]))
}

/** Items that ask about the same call have the same text here. */
function sameCallKey({ kind, toolName, arguments: args }: WaitingItem): string {
  return `${kind} ${toolName} ${canonicalJson(args)}`
}

/**
 * Keeps the items in the order in which they were first seen, the oldest first, so that they do not
 * move while a person is about to click one. The chosen item stays while the person looks at it, even
 * if someone else has just decided it.
 */
function useStable(
  waiting: readonly WaitingItem[],
  chosen: string | undefined,
): readonly WaitingItem[] {
  const earlier = useRef(new Map<string, WaitingItem>())
  const items = useMemo(() => {
    const current = new Map(waiting.map((item) => [item.interruptId, item]))
    const stable = [...earlier.current.values()].flatMap((item) => {
      const now = current.get(item.interruptId)
      current.delete(item.interruptId)
      return now ?? (item.interruptId === chosen ? item : [])
    })
    return [...stable, ...current.values()]
  }, [waiting, chosen])
  useEffect(() => {
    earlier.current = new Map(items.map((item) => [item.interruptId, item]))
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
