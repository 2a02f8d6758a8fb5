import { useChat, type UIMessage } from '@ai-sdk/react'
import {
  DefaultChatTransport,
  getToolName,
  isToolUIPart,
  lastAssistantMessageIsCompleteWithApprovalResponses,
} from 'ai'
import { StrictMode, useState, type ReactNode } from 'react'
import { createRoot } from 'react-dom/client'
import './page.css'

const api = '/agents/assistant/chat'

/** The id of the chat is in the address, so that a reload finds the same thread. */
const known = location.hash.slice(1)
const id = known || crypto.randomUUID()
location.hash = id

/** What was said before, and the number of the last event that it contains. */
interface Past {
  messages: UIMessage[]
  seq: number
}

function Chat({ past }: { past: Past }) {
  const [transport] = useState(() => chatTransport(past.seq))
  const { messages, status, error, sendMessage, stop, addToolApprovalResponse } = useChat({
    id,
    transport,
    messages: past.messages,
    resume: past.seq > 0, // an answer that is being given goes on after a reload
    sendAutomaticallyWhen: lastAssistantMessageIsCompleteWithApprovalResponses,
  })
  const isBusy = status === 'submitted' || status === 'streaming'

  /** `stop` only closes the connection; the run is stopped on the server. */
  async function stopRun() {
    await fetch(`${api}/${id}/stop`, { method: 'POST' })
    await stop()
  }

  return (
    <main>
      <h1>Assistant</h1>
      <ol aria-label="Conversation" aria-busy={isBusy}>
        {messages.map((message) => (
          <li key={message.id} className={message.role}>
            {message.parts.map((part, index) => (
              <Part key={index} part={part} decide={addToolApprovalResponse} />
            ))}
          </li>
        ))}
      </ol>
      {error && <p role="alert">{error.message}</p>}
      <Composer isBusy={isBusy} send={(text) => void sendMessage({ text })} stop={stopRun} />
    </main>
  )
}

/** How a call ended; calls in other states are still on their way. */
const STATES: Record<string, string> = {
  'output-available': 'done',
  'output-error': 'failed',
  'output-denied': 'denied',
}

type Decide = ReturnType<typeof useChat>['addToolApprovalResponse']

function Part({ part, decide }: { part: UIMessage['parts'][number]; decide: Decide }): ReactNode {
  if (part.type === 'text') return <p>{part.text}</p>
  if (!isToolUIPart(part)) return null
  const call = `${getToolName(part)} ${JSON.stringify(part.input ?? {})}`
  if (part.state !== 'approval-requested')
    return <p className="call">{`${call} · ${STATES[part.state] ?? 'works'}`}</p>
  const approvalId = part.approval.id
  return (
    <fieldset>
      <legend>May this happen?</legend>
      <code>{call}</code>
      <button onClick={() => void decide({ id: approvalId, approved: true })}>Approve</button>
      <button onClick={() => void decide({ id: approvalId, approved: false })}>Deny</button>
    </fieldset>
  )
}

interface ComposerProps {
  isBusy: boolean
  send: (text: string) => void
  stop: () => Promise<void>
}

function Composer({ isBusy, send, stop }: ComposerProps) {
  const [text, setText] = useState('')
  return (
    <form
      onSubmit={(event) => {
        event.preventDefault()
        if (text.trim() === '') return
        send(text)
        setText('')
      }}
    >
      <input
        aria-label="Message"
        autoFocus
        placeholder="note buy milk"
        value={text}
        onChange={(event) => setText(event.target.value)}
      />
      <button>Send</button>
      <button type="button" disabled={!isBusy} onClick={() => void stop()}>
        Stop
      </button>
    </form>
  )
}

/** Resuming begins where the history ends, so that an answer which ends in between is not missed. */
function chatTransport(seq: number) {
  return new DefaultChatTransport({
    api,
    prepareReconnectToStreamRequest: () => ({ api: `${api}/${id}/stream?after=${seq}` }),
  })
}

/** Loads a chat that was begun before. */
async function loadPast(): Promise<Past> {
  const response = await fetch(`${api}/${id}`)
  return response.ok ? ((await response.json()) as Past) : NOTHING
}

const NOTHING: Past = { messages: [], seq: 0 }

createRoot(document.getElementById('root')!).render(
  <StrictMode>
    <Chat past={known === '' ? NOTHING : await loadPast()} />
  </StrictMode>,
)
