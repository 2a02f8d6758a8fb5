import { type ComponentType, memo, type ReactNode, useEffect } from 'react'
import type { ThreadInfo } from '@skein/runtime'
import type { ViewItem, ViewMessage } from '@skein/runtime/view'
import { duration, line, plural } from '../../parts/format.ts'
import { To } from '../../parts/link.tsx'
import { MessageView, Who } from '../../parts/message.tsx'
import { Prose } from '../../parts/prose.tsx'
import { Badge, stateOf, stateOfChild } from '../../parts/status.tsx'
import { CallView } from '../../parts/tool-call.tsx'
import { modelTime } from '../../state/facts.ts'
import { peopleWaitedFor, type ShownThread, type TreeState } from '../../state/tree.ts'
import { MessageActs } from './message-acts.tsx'
import { Question } from './question.tsx'
import { DraftEntry } from './draft-entry.tsx'
import { Ending } from './ending.tsx'
import { agentName, isSideB } from './agent-name.ts'
import type { Branches } from './branches.tsx'

/** What a row of the conversation shows. */
export type ChatEntry =
  | ViewItem
  | { readonly type: 'silent'; readonly id: string; readonly at: string; readonly text: string }
  /** A child thread that belongs to no call: it was created when its variables were provided, or by code. */
  | { readonly type: 'child'; readonly id: string; readonly at: string }
  | { readonly type: 'draft' }
  | { readonly type: 'ending' }

/** Returns a key for an entry that does not change when entries are inserted before it. */
export function entryKey(entry: ChatEntry): string {
  if ('id' in entry) return `${entry.type} ${entry.id}`
  return entry.type === 'note' ? `note ${entry.at} ${entry.text}` : entry.type
}

interface EntryProps {
  readonly thread: ShownThread
  readonly tree: TreeState
  readonly open: ReadonlySet<string>
  readonly toggle: (id: string) => void
  readonly selected: string | undefined
  readonly select: (id: string) => void
  /** The nesting level of the child in which this entry is shown; 0 for the thread itself. */
  readonly depth: number
  /**
   * The branches of the thread, by the message at which they part; absent for a child that is shown inside its parent.
   */
  readonly branches?: ReadonlyMap<string, Branches>
  readonly onFork?: (message: ViewMessage) => void
}

/** One entry of the conversation. It is rendered again when the thread changes, not while a person scrolls. */
export const ChatEntryRow: ComponentType<EntryProps & { readonly entry: ChatEntry }> =
  memo(EntryView)

function EntryView({ entry, ...props }: EntryProps & { readonly entry: ChatEntry }): ReactNode {
  const { thread, open, toggle, selected, select, depth } = props
  const { facts } = thread
  switch (entry.type) {
    case 'message':
      return (
        <MessageView
          message={entry}
          facts={facts.messages.get(entry.id)}
          name={nameOf(entry, thread)}
          threadId={thread.threadId}
          isSideB={isSideB(entry.agentId, thread)}
          isSelected={selected === entry.id}
        >
          {props.onFork && depth === 0 && entry.subagentId === undefined && (
            <MessageActs
              message={entry}
              branches={props.branches?.get(entry.id)}
              isPast={thread.isPast === true}
              onFork={props.onFork}
              onDetails={select}
            />
          )}
        </MessageView>
      )
    case 'call': {
      const id = entry.id
      return (
        <div className={`indent ${isSideB(entry.agentId, thread) ? 'side-b' : ''}`}>
          <CallView
            threadId={thread.threadId}
            call={entry}
            facts={facts.calls.get(id)}
            isOpen={open.has(`${thread.threadId} ${id}`)}
            isSelected={selected === id}
            onToggle={() => toggle(`${thread.threadId} ${id}`)}
            onSelect={select}
          >
            <Question thread={thread} toolCallId={id} />
            {entry.childId !== undefined && <Child {...props} threadId={entry.childId} />}
          </CallView>
        </div>
      )
    }
    case 'note':
      return <p className="note indent soft small">{line(entry.text, 400)}</p>
    case 'silent':
      return (
        <div className="msg silent">
          <Who name="runtime" kind="child" detail="silent" at={entry.at} />
          <div className="said soft">
            <Prose text={entry.text} />
          </div>
        </div>
      )
    case 'child':
      return (
        <div className="indent">
          <Child {...props} threadId={entry.id} />
        </div>
      )
    case 'draft':
      return <DraftEntry thread={thread} />
    case 'ending':
      return <Ending thread={thread} />
  }
}

/** A child thread inside its parent: a line that opens its conversation. */
function Child({ threadId, ...props }: EntryProps & { readonly threadId: string }): ReactNode {
  const { tree, thread, open, toggle, depth } = props
  const child = tree.threads.get(threadId)
  const info = tree.below.get(threadId)
  const report = thread.view.children.find((one) => one.threadId === threadId)
  const key = `child ${threadId}`
  const isOpen = open.has(key)
  useEffect(() => {
    if (isOpen) tree.read.thread(threadId)
  }, [isOpen, tree.read, threadId])
  const isBackground = thread.facts.background.has(threadId)
  const childState = stateOfChild(report?.status)
  const lifecycle =
    childState.lifecycle === 'terminated'
      ? childState.lifecycle
      : (child?.view.status ?? info?.lifecycle ?? childState.lifecycle)
  const [shape, words] = stateOf({
    lifecycle,
    outcome: childState.outcome ?? child?.view.result?.outcome,
    waiting: child ? peopleWaitedFor(child) : info?.waiting,
    text: report?.statusText,
  })
  const items = child?.view.items ?? []
  const latest = items.slice(-CHILD_ITEMS)
  return (
    <div className={`child-box ${isBackground ? 'background' : ''}`}>
      <div className="child-line small">
        <button type="button" className="link" aria-expanded={isOpen} onClick={() => toggle(key)}>
          {isOpen ? 'Close' : 'Open'} {line(report?.name ?? 'the child', 40)} here
        </button>
        <To className="link" address={{ screen: 'thread', threadId }}>
          Open as a page
        </To>
        <Badge shape={shape}>{words}</Badge>
        <span className="soft">
          {isBackground ? 'in the background' : shape === 'run' && 'the call waits for it'}
          {(child || info) && (
            <span className="num">
              {(isBackground || shape === 'run') && ' · '}
              {childNumbers(child, info)}
            </span>
          )}
        </span>
      </div>
      {child && !isOpen && <ChildQuestions {...props} child={child} />}
      {isOpen && !child && <p className="soft small">Loading its log …</p>}
      {isOpen && child && (
        <div className="child-log">
          {latest.length < items.length && (
            <p className="soft small">
              {plural(items.length - latest.length, 'earlier entry', 'earlier entries')}: open it as
              a page.
            </p>
          )}
          {depth < MAX_DEPTH &&
            latest.map((item) => (
              <ChatEntryRow
                key={entryKey(item)}
                {...props}
                thread={child}
                entry={item}
                depth={depth + 1}
              />
            ))}
          {child.facts.draft && <DraftEntry thread={child} />}
          {child.view.result && child.view.result.outcome !== 'completed' && (
            <Ending thread={child} />
          )}
        </div>
      )}
    </div>
  )
}

/** What a child has used, from its log if that was loaded, else from the list of threads. */
function childNumbers(child: ShownThread | undefined, info: ThreadInfo | undefined): string {
  const { usage } = child?.view ?? {}
  return [
    ...(usage ? [plural(usage.turns, 'turn')] : []),
    `${usage ? usage.inputTokens + usage.outputTokens : info!.tokens} tok`,
    ...(child ? [`model time ${duration(modelTime(child.facts))}`] : []),
  ].join(' · ')
}

const CHILD_ITEMS = 100
const MAX_DEPTH = 6

/** The questions to a person that a collapsed child, or a child of it, has. */
function ChildQuestions({ child, tree }: EntryProps & { readonly child: ShownThread }): ReactNode {
  const below = child.view.children.map(({ threadId }) => tree.threads.get(threadId))
  return (
    <>
      {child.view.waiting
        .filter((wait) => wait.toolCallId !== undefined && wait.for !== 'child')
        .map((wait) => (
          <Question key={wait.interruptId} thread={child} toolCallId={wait.toolCallId!} />
        ))}
      {below.map(
        (one) =>
          one && (
            <ChildQuestions
              key={one.threadId}
              child={one}
              tree={tree}
              thread={one}
              open={NONE}
              toggle={() => undefined}
              selected={undefined}
              select={() => undefined}
              depth={0}
            />
          ),
      )}
    </>
  )
}

const NONE: ReadonlySet<string> = new Set()

function nameOf(message: ViewMessage, thread: ShownThread): string {
  if (message.from === 'agent') return agentName(message.agentId, thread)
  if (message.subagentId !== undefined) {
    const child = thread.view.children.find(({ threadId }) => threadId === message.subagentId)
    return child?.name ?? 'child'
  }
  if (thread.view.parentThreadId !== undefined && message.userId === undefined) return 'parent'
  return message.userId ?? 'you'
}
