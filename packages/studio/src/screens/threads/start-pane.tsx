import { type ReactNode, useLayoutEffect, useRef, useState } from 'react'
import { ArrowUp } from '../../icons/lucide.ts'
import { ErrorBox } from '../../parts/error-box.tsx'
import { line } from '../../parts/format.ts'
import { useAddress } from '../../state/address.ts'
import { inOrder } from '../../state/agent-order.ts'
import { takeTypedEarly, useLoading } from '../../state/keys.ts'
import { useStore } from '../../state/store.ts'
import { useMay, useStudio } from '../../state/studio.ts'
import { useResource } from '../../state/resource.ts'
import { suggestionsFor } from './demo.ts'
import { useTitle } from '../../state/title.ts'

/** The pane next to the list while no thread is open; a new thread can be started in it. */
export function StartPane(): ReactNode {
  const { client } = useStudio()
  const agents = useResource('agents', () => client.agents.list())
  const [chosen, setChosen] = useState<string>()
  const list = inOrder(agents.value ?? [])
  const agent = list.find(({ name }) => name === chosen) ?? list[0]
  useTitle('Threads · Studio')
  useLoading('the agents', agents.isLoading)
  return (
    <div className="start">
      <h1>Start a thread</h1>
      <p className="soft">
        A thread is a conversation with an agent. It is saved, keeps running when you close this
        page, and stays in the list.
      </p>
      {agents.error !== undefined && <ErrorBox error={agents.error} retry={agents.reload} />}
      <fieldset className="agent-choice">
        <legend className="hidden">Agent</legend>
        {list.map(({ name, title, description, calledBy }) => (
          <label key={name} className={name === agent?.name ? 'chosen' : ''}>
            <input
              type="radio"
              name="agent"
              value={name}
              checked={name === agent?.name}
              onChange={() => setChosen(name)}
            />
            <span>
              <b>{line(title ?? name, 60)}</b>
              {description !== undefined && (
                <span className="soft block small">{line(description, 160)}</span>
              )}
              {calledBy.length > 0 && (
                <span className="soft block small">Usually called by {calledBy.join(', ')}.</span>
              )}
            </span>
          </label>
        ))}
      </fieldset>
      {agent && <FirstMessage agent={agent.name} suggestions={suggestionsFor(agent)} isFocused />}
    </div>
  )
}

/** The first message of a new thread. */
export function FirstMessage({
  agent,
  suggestions = [],
  isFocused = false,
  isPlayground = false,
}: {
  readonly agent: string
  /** Messages to send with one click, with a title each. */
  readonly suggestions?: readonly (readonly [string, string])[]
  readonly isFocused?: boolean
  /** Whether the person may choose another model and other settings for the run, if the server allows it. */
  readonly isPlayground?: boolean
}): ReactNode {
  const { client, lists } = useStudio()
  const [, go] = useAddress()
  const [text, setText] = useState('')
  const [error, setError] = useState<unknown>()
  const [isBusy, setBusy] = useState(false)
  const mayWrite = useMay('threads:write')
  const [model, setModel] = useState('')
  const [settings, setSettings] = useState('')
  const field = useRef<HTMLTextAreaElement>(null)
  useLayoutEffect(() => {
    if (!isFocused || !matchMedia('(pointer: fine)').matches) return
    field.current?.focus()
    setText((before) => before + takeTypedEarly())
  }, [isFocused])
  const start = async (text: string): Promise<void> => {
    if (text.trim() === '' || isBusy) return
    setBusy(true)
    try {
      const message = {
        text,
        model: model === '' ? undefined : model,
        settings: settings.trim() === '' ? undefined : JSON.parse(settings),
      }
      const thread = await client.threads.create({ agent, message })
      lists.refresh()
      go({ screen: 'thread', threadId: thread.id })
    } catch (failure) {
      setError(failure)
      setBusy(false)
    }
  }
  if (!mayWrite) return <p className="soft">You may read threads but not start them.</p>
  return (
    <form
      className="stack"
      onSubmit={(event) => {
        event.preventDefault()
        void start(text)
      }}
    >
      <div className="compose">
        <textarea
          ref={field}
          className="field"
          rows={3}
          aria-label="First message"
          placeholder={`Message ${line(agent, 40)}`}
          value={text}
          onChange={(event) => setText(event.target.value)}
          onKeyDown={(event) => {
            if (event.key === 'Escape') event.currentTarget.blur()
            if (event.key !== 'Enter' || event.shiftKey || event.nativeEvent.isComposing) return
            event.preventDefault()
            void start(text)
          }}
        />
        <button
          className="btn primary icon"
          aria-label="Start"
          title="Start (Enter)"
          disabled={isBusy || text.trim() === ''}
        >
          <ArrowUp size={16} aria-hidden />
        </button>
      </div>
      {suggestions.length > 0 && (
        <div className="suggestions btns" role="group" aria-label="Messages to try">
          {suggestions.map(([title, message]) => (
            <button
              key={title}
              type="button"
              className="btn tiny"
              title={message}
              disabled={isBusy}
              onClick={() => void start(message)}
            >
              {title}
            </button>
          ))}
        </div>
      )}
      {isPlayground && (
        <Playground
          model={model}
          setModel={setModel}
          settings={settings}
          setSettings={setSettings}
        />
      )}
      {error !== undefined && <ErrorBox error={error} />}
    </form>
  )
}

/** Fields to choose another model and other settings for one run. The thread shows which were used. */
function Playground({
  model,
  setModel,
  settings,
  setSettings,
}: {
  readonly model: string
  readonly setModel: (model: string) => void
  readonly settings: string
  readonly setSettings: (settings: string) => void
}): ReactNode {
  const { client, me } = useStudio()
  const isAllowed = useStore(me)?.server.playground === true
  const agents = useResource(isAllowed ? 'agents' : undefined, () => client.agents.list())
  if (!isAllowed) return null
  const models = new Set(
    (agents.value ?? []).flatMap(({ sides }) => sides.flatMap((side) => side.models)),
  )
  return (
    <details className="small">
      <summary className="soft">Model and settings of this run</summary>
      <div className="stack playground">
        <label>
          <span>Model</span>
          <select
            className="select"
            value={model}
            onChange={(event) => setModel(event.target.value)}
          >
            <option value="">the model of the agent</option>
            {[...models].map((name) => (
              <option key={name} value={name}>
                {line(name, 80)}
              </option>
            ))}
          </select>
        </label>
        <label>
          <span>Settings, as JSON</span>
          <input
            className="field mono"
            placeholder={'{ "temperature": 0.2 }'}
            value={settings}
            onChange={(event) => setSettings(event.target.value)}
          />
        </label>
      </div>
    </details>
  )
}
