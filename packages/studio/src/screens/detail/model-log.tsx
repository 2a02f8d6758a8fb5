import { useState, type ReactNode } from 'react'
import { CommandLine } from '../../parts/copy.tsx'
import { Cost } from '../../parts/cost.tsx'
import { ErrorBox } from '../../parts/error-box.tsx'
import { Skeleton } from '../../parts/placeholder.tsx'
import { curlText } from '../../parts/curl.ts'
import { countText, duration, line } from '../../parts/format.ts'
import { Json } from '../../parts/json.tsx'
import { Prose } from '../../parts/prose.tsx'
import { useNeedsKey, useStudio } from '../../state/studio.ts'
import { useResource } from '../../state/resource.ts'
import { type Selected } from './detail-pane.tsx'
import { stepOf } from './events-tab.tsx'

/** The request to the model from which the selected call or message came, as it was sent. */
export function ModelLogView({
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
    return (
      <p className="soft pad">No request to a model led to this: a person or a tool made it.</p>
    )
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
  const toolNames = new Set(
    thread.view.items.flatMap((item) => (item.type === 'call' ? [item.toolName] : [])),
  )
  return (
    <section>
      <p className="soft small">
        <span className="mono">{line(`${value.provider}/${value.model}`, 100)}</span> · attempt{' '}
        {value.attempt} · never contains secrets.{' '}
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
                  <code className={toolNames.has(name) ? 'tool-ink' : ''}>{line(name, 60)}</code>
                  {toolNames.has(name) && <span className="soft small"> called</span>}
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
      <h3>The same as a command</h3>
      <Curl path={`/threads/${thread.threadId}/logs/${logId}`} />
    </section>
  )
}

function messageEvent({ thread }: Selected, messageId: string | undefined): unknown {
  const logEvent = thread.events.find(
    ({ event }) => event.type === 'message_added' && event.message.id === messageId,
  )?.event
  return logEvent?.type === 'message_added' ? logEvent.message : undefined
}

/** A request for something that is read, as a command. */
export function Curl({ path }: { readonly path: string }): ReactNode {
  const { url } = useStudio()
  const needsKey = useNeedsKey()
  return <CommandLine text={curlText({ url: `${url}${path}`, needsKey })} />
}
