import { useState, type FormEvent, type ReactNode } from 'react'
import { ErrorBox } from '../../parts/basics.tsx'
import { useAddress } from '../../state/address.ts'
import { useResource, useStudio } from '../../state/studio.ts'
import { useTitle } from '../../shell/badge.ts'

/** What is beside the list while no thread is open: the way to start one. */
export function StartPane(): ReactNode {
  const { client, lists } = useStudio()
  const [, go] = useAddress()
  const agents = useResource('agents', () => client.agents.list())
  const [chosen, setChosen] = useState<string>()
  const [text, setText] = useState('')
  const [error, setError] = useState<unknown>()
  const agent = chosen ?? agents.value?.[0]?.name
  useTitle('Threads · Studio')
  const start = async (event: FormEvent): Promise<void> => {
    event.preventDefault()
    if (agent === undefined || text.trim() === '') return
    try {
      const thread = await client.threads.create({ agent, message: text })
      lists.refresh()
      go({ screen: 'thread', threadId: thread.id })
    } catch (failure) {
      setError(failure)
    }
  }
  return (
    <form className="start" onSubmit={(event) => void start(event)}>
      <h1>Start a thread</h1>
      {error !== undefined && <ErrorBox error={error} />}
      <select
        className="select"
        aria-label="Agent"
        value={agent}
        onChange={(event) => setChosen(event.target.value)}
      >
        {(agents.value ?? []).map(({ name, title }) => (
          <option key={name} value={name}>
            {title ?? name}
          </option>
        ))}
      </select>
      <textarea
        className="field"
        rows={3}
        aria-label="First message"
        placeholder="Write the first message"
        value={text}
        onChange={(event) => setText(event.target.value)}
      />
      <button className="btn primary" disabled={text.trim() === ''}>
        Start
      </button>
    </form>
  )
}
