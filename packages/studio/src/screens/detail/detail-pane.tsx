import { type ReactNode } from 'react'
import type { ViewCall, ViewMessage } from '@skein/runtime/view'
import { X } from '../../icons/lucide.ts'
import { Time } from '../../parts/time.tsx'
import { Checklist } from '../../parts/checklist.tsx'
import { EvidenceList } from '../../parts/evidence.tsx'
import { duration, line } from '../../parts/format.ts'
import { Prose } from '../../parts/prose.tsx'
import { CallBody, callWords, DecisionLine, LateLine, UndoLine } from '../../parts/tool-call.tsx'
import type { CallFacts } from '../../state/facts.ts'
import { useAddress, type ThreadAddress } from '../../state/address.ts'
import type { LoggedEvent, ShownThread, TreeState } from '../../state/tree.ts'
import { AuditTab } from './audit-tab.tsx'
import { ModelLogView, Curl } from './model-log.tsx'
import { EventJson, EventsTab } from './events-tab.tsx'

const TABS = ['readable', 'request', 'response', 'events', 'evidence', 'audit'] as const
type Tab = (typeof TABS)[number]

const NAMES: Readonly<Record<Tab, string>> = {
  readable: 'Readable',
  request: 'Request',
  response: 'Response',
  events: 'Events',
  evidence: 'Evidence',
  audit: 'Audit',
}

/** What the page's address selects: a call, a message or an event of one of the threads in the tree. */
export interface Selected {
  readonly thread: ShownThread
  readonly call?: ViewCall
  readonly message?: ViewMessage
  readonly event?: LoggedEvent
}

/** The details of what is selected. */
export function DetailPane({
  tree,
  thread,
  address,
  onClose,
}: {
  readonly tree: TreeState
  readonly thread: ShownThread
  readonly address: ThreadAddress
  readonly onClose: () => void
}): ReactNode {
  const [, go] = useAddress()
  const selection = findSelected(tree, thread, address.select ?? '')
  const tab = TABS.find((one) => one === address.tab) ?? 'readable'
  const open = (next: Tab): void =>
    go({ ...address, tab: next === 'readable' ? undefined : next }, true)
  return (
    <aside className="detail" aria-label="Details">
      <h2 className="hidden">Details</h2>
      <div className="detail-head">
        <div className="tabs" role="tablist" aria-label="Details">
          {TABS.map((one) => (
            <button
              key={one}
              type="button"
              role="tab"
              id={`tab-${one}`}
              aria-selected={tab === one}
              aria-controls="detail-body"
              tabIndex={tab === one ? 0 : -1}
              className="tab"
              onClick={() => open(one)}
              onKeyDown={(event) => {
                const step = { ArrowRight: 1, ArrowLeft: -1 }[event.key]
                if (step === undefined) return
                const next = TABS[(TABS.indexOf(one) + step + TABS.length) % TABS.length]!
                open(next)
                document.getElementById(`tab-${next}`)?.focus()
              }}
            >
              {NAMES[one]}
            </button>
          ))}
        </div>
        <button
          type="button"
          className="btn quiet icon"
          aria-label="Close the details"
          title="Close (Escape)"
          onClick={onClose}
        >
          <X size={15} aria-hidden />
        </button>
      </div>
      <div
        className="detail-body"
        id="detail-body"
        role="tabpanel"
        aria-labelledby={`tab-${tab}`}
        tabIndex={0}
      >
        {selection ? (
          <TabBody tab={tab} selected={selection} tree={tree} address={address} />
        ) : (
          <p className="soft pad">
            The selected entry is not in this thread, or has not arrived yet.
          </p>
        )}
      </div>
    </aside>
  )
}

function findSelected(tree: TreeState, thread: ShownThread, id: string): Selected | undefined {
  const [, seq, threadId = thread.threadId] = /^event (\d+)(?: (.+))?$/.exec(id) ?? []
  if (seq !== undefined) {
    const owner = tree.threads.get(threadId) ?? thread
    const event = owner.events.find((one) => one.seq === Number(seq))
    return event && { thread: owner, event }
  }
  for (const one of [thread, ...tree.threads.values()])
    for (const item of one.view.items) {
      if (item.type === 'call' && item.id === id) return { thread: one, call: item }
      if (item.type === 'message' && item.id === id) return { thread: one, message: item }
    }
  return undefined
}

function TabBody({
  tab,
  selected,
  tree,
  address,
}: {
  readonly tab: Tab
  readonly selected: Selected
  readonly tree: TreeState
  readonly address: ThreadAddress
}): ReactNode {
  const { thread } = selected
  switch (tab) {
    case 'readable':
      return <Readable selected={selected} />
    case 'request':
    case 'response':
      return <ModelLogView tab={tab} selected={selected} />
    case 'events':
      return <EventsTab selected={selected} />
    case 'evidence':
      return <EvidenceTab selected={selected} address={address} />
    case 'audit':
      return <AuditTab threadId={tree.threads.get(tree.rootId)?.threadId ?? thread.threadId} />
  }
}

function Readable({
  selected: { thread, call, message, event },
}: {
  readonly selected: Selected
}): ReactNode {
  if (call) {
    const facts = thread.facts.calls.get(call.id)
    return (
      <>
        <section>
          <h3 className="mono tool-ink name">{line(call.toolName, 80)}</h3>
          <p className="soft">
            {callWords(call)} · <Time at={call.at} className="num" isAgo />
            {call.endedAt !== undefined && (
              <span className="num">
                {' '}
                · took{' '}
                {duration(Date.parse(call.endedAt) - Date.parse(facts?.startedAt ?? call.at))}
              </span>
            )}
          </p>
          {facts && <DecisionLine facts={facts} />}
          <LateLine call={call} />
          <UndoLine call={call} />
        </section>
        <section>
          <CallBody threadId={thread.threadId} call={call} facts={facts} />
        </section>
        <section>
          <h3>Its events, as a command</h3>
          <Curl path={callEventsPath(thread, facts)} />
        </section>
      </>
    )
  }
  if (message) {
    const facts = thread.facts.messages.get(message.id)
    return (
      <>
        <section>
          <Prose text={message.text} />
        </section>
        <section>
          <dl className="facts">
            {facts?.modelName !== undefined && (
              <>
                <dt>Model</dt>
                <dd>{line(facts.modelName, 80)}</dd>
              </>
            )}
            <dt>Tokens</dt>
            <dd className="num">{facts?.usage ? JSON.stringify(facts.usage) : 'none'}</dd>
            <dt>Event</dt>
            <dd className="num">{facts?.seq}</dd>
          </dl>
        </section>
      </>
    )
  }
  return (
    <section>
      <h3>{event?.event.type}</h3>
      {event && <EventJson threadId={thread.threadId} logged={event} />}
    </section>
  )
}

/** The events from that with the call to that with its end. */
function callEventsPath({ threadId, view }: ShownThread, facts: CallFacts | undefined): string {
  const from = facts?.seq ?? view.seq
  return `/threads/${threadId}/events?after=${from - 1}&limit=${CALL_EVENTS}`
}

const CALL_EVENTS = 20

/** What is known about the delivery of answers before a gate has decided. */
function deliveryText({ view }: ShownThread): string {
  const isChecked = view.items.some(
    (item) => item.type === 'message' && item.delivery !== undefined,
  )
  return isChecked || view.draftDelivery === 'pending'
    ? 'A gate checks the answers; it has not decided yet.'
    : 'No gate checks the answers of this agent.'
}

function EvidenceTab({
  selected,
  address,
}: {
  readonly selected: Selected
  readonly address: ThreadAddress
}): ReactNode {
  const [, go] = useAddress()
  const { thread, call } = selected
  const facts = call && thread.facts.calls.get(call.id)
  return (
    <section>
      {facts && (
        <>
          <h3>Gates of this call</h3>
          <Checklist verdicts={facts.verdicts} />
          {facts.verdicts.length === 0 && <p className="soft">No gate has judged it.</p>}
        </>
      )}
      <h3>Evidence of the thread</h3>
      <EvidenceList
        evidence={thread.facts.evidence}
        onSelect={(id) => go({ ...address, select: id }, true)}
      />
      <h3>Delivery</h3>
      {!thread.facts.verdicts.some((verdict) => verdict.toolCallId === undefined) && (
        <p className="soft">{deliveryText(thread)}</p>
      )}
      <Checklist
        verdicts={thread.facts.verdicts.filter((verdict) => verdict.toolCallId === undefined)}
      />
    </section>
  )
}
