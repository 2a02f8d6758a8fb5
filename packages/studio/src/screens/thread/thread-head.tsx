import { type ReactNode, useState } from 'react'
import type { ViewUsage } from '@skein/runtime/view'
import { CircleStop, HistoryIcon as History, Play } from '../../icons/lucide.ts'
import { Cost } from '../../parts/cost.tsx'
import { ErrorBox } from '../../parts/error-box.tsx'
import { useNow } from '../../parts/time.tsx'
import { age, countText, duration, line, plural } from '../../parts/format.ts'
import { GrantsButton } from '../../parts/grants.tsx'
import { Menu, MenuItem } from '../../parts/menu.tsx'
import { To } from '../../parts/link.tsx'
import { Badge, stateOf } from '../../parts/status.tsx'
import type { ThreadAddress, View } from '../../state/address.ts'
import { modelTime } from '../../state/facts.ts'
import { useResource } from '../../state/resource.ts'
import { useStudio } from '../../state/studio.ts'
import { peopleWaitedFor, type ShownThread, type TreeState } from '../../state/tree.ts'
import { ExportMenu } from './export-menu.tsx'
import { ThreadMenu } from './thread-menu.tsx'

const TABS: readonly (readonly [View, string, string])[] = [
  ['chat', 'Chat', 'c'],
  ['tree', 'Tree', 't'],
  ['timeline', 'Timeline', 'l'],
  ['events', 'Events', ''],
]

/** The header of a thread: its title, its usage, its actions and its views. */
export function ThreadHeader({
  thread,
  tree,
  title,
  address,
}: {
  readonly thread: ShownThread
  readonly tree: TreeState
  readonly title: string
  readonly address: ThreadAddress
}): ReactNode {
  const { view, facts } = thread
  const sums = sumOf(tree)
  const [shape, words] = stateOf({
    lifecycle: view.status,
    outcome: view.result?.outcome,
    waiting: peopleWaitedFor(thread),
    text: view.statusText,
    isNew: view.items.length === 0,
  })
  const { view: current = 'chat' } = address
  return (
    <header className="head">
      <Crumbs thread={thread} />
      <div className="head-line">
        <h1 className="cut" title={title}>
          {title}
        </h1>
        {address.at === undefined && (
          <>
            <To
              className="btn quiet icon"
              replace
              address={{ ...address, at: view.seq }}
              aria-label="Look back in time"
              title="Look back in time (h)"
            >
              <History size={16} aria-hidden />
            </To>
            <ExportMenu threadId={thread.threadId} />
            <ThreadMenu threadId={thread.threadId} title={title} />
            <Controls thread={thread} />
          </>
        )}
      </div>
      <div className="numbers">
        <Badge shape={shape}>{words}</Badge>
        <span title="Of this thread and all its children">
          tokens <b className="num">{countText(sums.input + sums.output)}</b>{' '}
          <span className="num">
            in {countText(sums.input)} · out {countText(sums.output)}
            {facts.cachedTokens > 0 && ` · cached ${countText(facts.cachedTokens)}`}
          </span>
        </span>
        <span>
          cost{' '}
          <b>
            <Cost usd={sums.costUsd} />
          </b>
        </span>
        <Times thread={thread} />
        <span className="num">{plural(view.seq, 'event')}</span>
        <GrantsButton threadId={thread.threadId} version={facts.grantChanges} />
      </div>
      <nav className="tabs" aria-label="Views">
        {TABS.map(([name, label, key]) => (
          <To
            key={name}
            className="tab"
            address={{ ...address, view: name, with: undefined }}
            aria-current={current === name && address.with === undefined ? 'page' : undefined}
          >
            {label}
            {name === 'tree' && view.children.length > 0 && (
              <span className="faint num">{countBelow(tree)}</span>
            )}
            {key !== '' && <kbd>{key}</kbd>}
          </To>
        ))}
      </nav>
    </header>
  )
}

/**
 * What a thread and its descendants have used, from their logs or, for those whose log was not loaded,
 * from the list of threads.
 */
export function sumOf({ threads, below }: TreeState): {
  input: number
  output: number
  costUsd: number | null
} {
  let [input, output] = [0, 0]
  let costUsd: number | null = 0
  const add = (usage: Pick<ViewUsage, 'inputTokens' | 'outputTokens' | 'costUsd'>): void => {
    input += usage.inputTokens
    output += usage.outputTokens
    costUsd = costUsd === null || usage.costUsd === null ? null : costUsd + usage.costUsd
  }
  for (const { view } of threads.values()) add(view.usage)
  for (const [id, info] of below) if (!threads.has(id)) add(info)
  return { input, output, costUsd }
}

/** How many descendants are known. */
function countBelow({ rootId, threads, below }: TreeState): number {
  let count = below.size
  for (const id of threads.keys()) if (id !== rootId && !below.has(id)) count++
  return count
}

/** How long the models of the thread have worked and, separately, since when it waits for a person. */
function Times({ thread: { view, facts } }: { readonly thread: ShownThread }): ReactNode {
  const now = useNow()
  const since = view.waiting.find((wait) => wait.for === 'person')?.since
  return (
    <span title="How long models have worked in this thread, without its children">
      model time <b className="num">{duration(modelTime(facts))}</b>
      {since !== undefined && (
        <span className="waits">
          {' '}
          + {age(now - Date.parse(since)).replace('now', 'a moment')} waiting
        </span>
      )}
    </span>
  )
}

/** The threads above a child. */
function Crumbs({ thread }: { readonly thread: ShownThread }): ReactNode {
  const { client } = useStudio()
  const { parentThreadId } = thread.view
  const parents = useResource(parentThreadId && `parents ${parentThreadId}`, async () => {
    const above: { id: string; agent: string }[] = []
    for (let id: string | null | undefined = parentThreadId; id;) {
      const parent = await client.threads.get(id)
      above.unshift({ id: parent.id, agent: parent.agent })
      id = parent.parentId
    }
    return above
  })
  const agents = [
    ...new Set(Array.from(thread.facts.agents.keys(), (id) => id.replace(/\/[ab]$/, ''))),
  ]
  return (
    <nav className="crumbs small soft" aria-label="Where this thread is">
      {(parents.value ?? []).map(({ id, agent }) => (
        <span key={id}>
          <To className="link" address={{ screen: 'thread', threadId: id }}>
            {line(agent, 40)}
          </To>{' '}
          ›{' '}
        </span>
      ))}
      <span>
        {(agents.length > 0 ? agents : [thread.view.agent])
          .map((name) => line(name, 40))
          .join(' → ')}
      </span>
    </nav>
  )
}

/** The buttons to stop, resume and retry; each says what it keeps. */
function Controls({ thread }: { readonly thread: ShownThread }): ReactNode {
  const { client, notify } = useStudio()
  const [error, setError] = useState<unknown>()
  const { view, threadId } = thread
  const act = (work: Promise<void>, done: string): void => {
    work.then(() => notify(done), setError)
  }
  const children = view.children.filter(({ status }) => status === 'running').length
  const also =
    children > 0
      ? ` ${plural(children, 'child', 'children')} of it ${children === 1 ? 'stops' : 'stop'} too.`
      : ''
  const isBusy = view.status === 'running' || view.status === 'queued' || view.status === 'waiting'
  return (
    <div className="controls">
      {isBusy && (
        <Menu
          label={
            <>
              <CircleStop size={15} aria-hidden /> Stop
            </>
          }
        >
          {(close) => (
            <>
              <MenuItem
                title="Stop now"
                text={`Ends the running step. What it has said so far stays.${also}`}
                onClick={() => {
                  act(
                    client.threads.stop(threadId),
                    'Stopping. To continue later, send a message or press Resume.',
                  )
                  close()
                }}
              />
              <MenuItem
                title="Stop after this step"
                text={`The running step and its calls finish first, and their results stay.${also}`}
                onClick={() => {
                  act(
                    client.threads.stop(threadId, { afterStep: true }),
                    'Stopping after this step.',
                  )
                  close()
                }}
              />
            </>
          )}
        </Menu>
      )}
      {(view.status === 'stopped' || view.status === 'failed') && (
        <button
          type="button"
          className="btn"
          title={
            view.status === 'failed'
              ? 'Tries the failed step again. Everything before it stays; calls that have run do not run again.'
              : 'Continues where it stopped. Everything said so far stays.'
          }
          onClick={() => act(client.threads.resume(threadId), 'Continuing.')}
        >
          <Play size={14} aria-hidden /> {view.status === 'failed' ? 'Retry this step' : 'Resume'}
        </button>
      )}
      {error !== undefined && <ErrorBox error={error} />}
    </div>
  )
}
