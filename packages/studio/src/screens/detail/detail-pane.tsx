import { X } from 'lucide-react'
import { useState, type ReactNode } from 'react'
import type { ViewCall, ViewMessage } from '@skein/runtime/view'
import { CommandLine, Cost, ErrorBox, Skeleton, Time } from '../../parts/basics.tsx'
import { Checklist, EvidenceList } from '../../parts/evidence.tsx'
import { countText, duration, line } from '../../parts/format.ts'
import { Json } from '../../parts/json.tsx'
import { Prose } from '../../parts/prose.tsx'
import { CallBody, DecisionLine, useWholeEvent } from '../../parts/tool-call.tsx'
import { useAddress, type ThreadAddress } from '../../state/address.ts'
import { useResource, useStudio } from '../../state/studio.ts'
import type { LoggedEvent, ShownThread, TreeState } from '../../state/tree.ts'
import { AuditTab } from './audit-tab.tsx'

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

/** What the address has selected: a call, a message or an event of a thread of the tree. */
interface Selected {
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
  const selected = findSelected(tree, thread, address.select ?? '')
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
        {selected ? (
          <TabBody tab={tab} selected={selected} tree={tree} address={address} />
        ) : (
          <p className="soft pad">What was selected is not in this thread, or not yet.</p>
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
      return <ModelLog tab={tab} selected={selected} />
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
            {call.state} · <Time at={call.at} className="num" />
            {call.endedAt !== undefined && (
              <span className="num">
                {' '}
                · {duration(Date.parse(call.endedAt) - Date.parse(facts?.startedAt ?? call.at))}
              </span>
            )}
          </p>
          {facts && <DecisionLine facts={facts} />}
        </section>
        <section>
          <CallBody threadId={thread.threadId} call={call} facts={facts} />
        </section>
        <section>
          <h3>Copy as</h3>
          <Curl path={`/threads/${thread.threadId}/view`} />
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

/** The step that a selected thing belongs to. */
function stepOf({ thread, call, message, event }: Selected): string | undefined {
  if (call) return thread.facts.calls.get(call.id)?.stepId
  if (message) return thread.facts.messages.get(message.id)?.stepId
  const { stepId } = (event?.event ?? {}) as { stepId?: string }
  return stepId
}

/** The request to the model that made the selected call or message, as it was sent. */
function ModelLog({
  tab,
  selected,
}: {
  readonly tab: 'request' | 'response'
  readonly selected: Selected
}): ReactNode {
  const { client } = useStudio()
  const { thread } = selected
  const stepId = stepOf(selected)
  const requests = thread.facts.requests.filter((request) => request.stepId === stepId)
  const logId = requests.at(-1)?.logId
  const log = useResource(logId && `log ${thread.threadId} ${logId}`, () =>
    client.threads.log(thread.threadId, logId!),
  )
  const [isRaw, setRaw] = useState(false)
  if (logId === undefined)
    return <p className="soft pad">No model was asked for this. A person or a tool made it.</p>
  if (log.error !== undefined)
    return (
      <div className="pad">
        <ErrorBox error={log.error} retry={log.reload} />
      </div>
    )
  if (!log.value) return <Skeleton />
  const { value } = log
  if (tab === 'response')
    return (
      <section>
        <dl className="facts">
          <dt>Model</dt>
          <dd className="mono">{line(`${value.provider}/${value.model}`, 100)}</dd>
          <dt>Took</dt>
          <dd className="num">
            {value.durationMs === undefined ? 'not answered' : duration(value.durationMs)}
            {value.firstTokenMs !== undefined &&
              `, first token after ${duration(value.firstTokenMs)}`}
          </dd>
          <dt>Ended</dt>
          <dd>
            {value.error ? (
              <span className="bad">{line(value.error.message, 300)}</span>
            ) : (
              (value.finishReason ?? 'unknown')
            )}
          </dd>
          <dt>Cost</dt>
          <dd>
            <Cost usd={value.costUsd} />
          </dd>
        </dl>
        <h3>Usage</h3>
        <Json value={value.usage ?? 'unknown'} label="Usage" />
        <h3>Message</h3>
        <Json value={messageEvent(selected, value.messageId)} label="Message of the model" />
      </section>
    )
  const called = new Set(
    thread.view.items.flatMap((item) => (item.type === 'call' ? [item.toolName] : [])),
  )
  return (
    <section>
      <p className="soft small">
        <span className="mono">{line(`${value.provider}/${value.model}`, 100)}</span> · attempt{' '}
        {value.attempt} · secrets are never in it.{' '}
        <button type="button" className="link" onClick={() => setRaw(!isRaw)}>
          {isRaw ? 'Readable' : 'Raw'}
        </button>
      </p>
      {isRaw ? (
        <Json value={value} label="Request" />
      ) : (
        <>
          <h3>System</h3>
          <Prose text={value.system ?? 'none'} />
          <h3>Tools ({value.tools.length})</h3>
          <ul className="tools">
            {value.tools.map((tool, index) => {
              const name = String(tool['name'] ?? index)
              return (
                <li key={name}>
                  <code className={called.has(name) ? 'tool-ink' : ''}>{line(name, 60)}</code>
                  {called.has(name) && <span className="soft small"> called</span>}
                </li>
              )
            })}
          </ul>
          <h3>Messages ({countText(value.messages.length)})</h3>
          <Json value={value.messages} label="Messages" />
          <h3>Parameters</h3>
          <Json value={value.params} label="Parameters" />
        </>
      )}
      <h3>Copy as</h3>
      <Curl path={`/threads/${thread.threadId}/logs/${logId}`} />
    </section>
  )
}

function messageEvent({ thread }: Selected, messageId: string | undefined): unknown {
  const found = thread.events.find(
    ({ event }) => event.type === 'message_added' && event.message.id === messageId,
  )?.event
  return found?.type === 'message_added' ? found.message : undefined
}

/** A request as a `curl` command. The key appears only as the name of a variable. */
function Curl({ path }: { readonly path: string }): ReactNode {
  const { url } = useStudio()
  return <CommandLine text={`curl ${url}${path} -H "authorization: Bearer $SKEIN_KEY"`} />
}

/** An event as it is stored. If the page has only the beginning of a long result, the whole event is loaded. */
function EventJson({
  threadId,
  logged: { seq, event, isCut },
}: {
  readonly threadId: string
  readonly logged: LoggedEvent
}): ReactNode {
  const whole = useWholeEvent(threadId, isCut ? seq : undefined)
  if (whole.isLoading) return <p className="soft small">Reading the event …</p>
  return <Json value={whole.value ?? event} label={`Event ${seq}`} />
}

function EventsTab({ selected }: { readonly selected: Selected }): ReactNode {
  const { thread, call, message, event } = selected
  const stepId = stepOf(selected)
  const related = thread.events.filter((logged) => {
    if (event) return logged.seq === event.seq
    const text = logged.event as {
      toolCallId?: string
      stepId?: string
      message?: { id?: string }
      interrupt?: { toolCallId?: string }
    }
    if (call)
      return (
        text.toolCallId === call.id ||
        text.interrupt?.toolCallId === call.id ||
        (stepId !== undefined && text.stepId === stepId)
      )
    return text.message?.id === message?.id || (stepId !== undefined && text.stepId === stepId)
  })
  return (
    <section>
      {related.map((logged) => (
        <details key={logged.seq} className="event-detail" open={related.length === 1}>
          <summary>
            <span className="faint num">{logged.seq}</span> {line(logged.event.type, 60)}
          </summary>
          <EventJson threadId={thread.threadId} logged={logged} />
        </details>
      ))}
      {related.length === 0 && <p className="soft">No event names this.</p>}
    </section>
  )
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
        <p className="soft">{thread.isGated ? 'Not delivered yet.' : 'Nothing here is gated.'}</p>
      )}
      <Checklist
        verdicts={thread.facts.verdicts.filter((verdict) => verdict.toolCallId === undefined)}
      />
    </section>
  )
}
