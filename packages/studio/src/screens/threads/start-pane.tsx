import { ArrowUp } from 'lucide-react'
import { useEffect, useRef, useState, type ReactNode } from 'react'
import { ErrorBox } from '../../parts/basics.tsx'
import { line } from '../../parts/format.ts'
import { useAddress } from '../../state/address.ts'
import { useMay, useResource, useStudio } from '../../state/studio.ts'
import { useTitle } from '../../state/title.ts'

/** What is beside the list while no thread is open: the way to start one. */
export function StartPane(): ReactNode {
  const { client } = useStudio()
  const agents = useResource('agents', () => client.agents.list())
  const [chosen, setChosen] = useState<string>()
  const list = agents.value ?? []
  const agent = list.find(({ name }) => name === chosen) ?? list[0]
  useTitle('Threads · Studio')
  return (
    <div className="start">
      <h2>Start a thread</h2>
      <p className="soft">
        A thread is a conversation with an agent. It is kept, goes on when this page is closed, and
        stands in the list.
      </p>
      {agents.error !== undefined && <ErrorBox error={agents.error} retry={agents.reload} />}
      <fieldset className="agent-choice">
        <legend className="hidden">Agent</legend>
        {list.map(({ name, title, description }) => (
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
            </span>
          </label>
        ))}
      </fieldset>
      {agent && <FirstMessage agent={agent.name} isFocused />}
    </div>
  )
}

/** The first message of a new thread. */
export function FirstMessage({
  agent,
  isFocused = false,
}: {
  readonly agent: string
  readonly isFocused?: boolean
}): ReactNode {
  const { client, lists } = useStudio()
  const [, go] = useAddress()
  const [text, setText] = useState('')
  const [error, setError] = useState<unknown>()
  const [isBusy, setBusy] = useState(false)
  const mayWrite = useMay('threads:write')
  const field = useRef<HTMLTextAreaElement>(null)
  useEffect(() => {
    if (isFocused && matchMedia('(pointer: fine)').matches) field.current?.focus()
  }, [isFocused])
  const start = async (): Promise<void> => {
    if (text.trim() === '' || isBusy) return
    setBusy(true)
    try {
      const thread = await client.threads.create({ agent, message: text })
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
        void start()
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
            void start()
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
      {error !== undefined && <ErrorBox error={error} />}
    </form>
  )
}
