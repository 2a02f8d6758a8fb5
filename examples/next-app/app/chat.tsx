'use client'

import { useChat, type UIMessage } from '@ai-sdk/react'
import {
  DefaultChatTransport,
  getToolName,
  isToolUIPart,
  lastAssistantMessageIsCompleteWithApprovalResponses,
} from 'ai'
import { useEffect, useState, type ReactNode } from 'react'

const api = '/agents/support/chat'

/** A chat: what was said before, and the number of the last event that this contains. */
interface Past {
  id: string
  messages: UIMessage[]
  seq: number
}

/** Asks for the messages of the chat that the address names, or of a new one. */
export function Chat() {
  const [chat, setChat] = useState<Past>()
  useEffect(() => {
    const known = location.hash.slice(1)
    if (known === '') {
      const id = crypto.randomUUID()
      location.hash = id
      return setChat({ id, messages: [], seq: 0 })
    }
    void fetch(`${api}/${known}`)
      .then((response) => (response.ok ? response.json() : { messages: [], seq: 0 }))
      .then((past: Omit<Past, 'id'>) => setChat({ ...past, id: known }))
  }, [])
  return chat ? <Conversation past={chat} /> : null
}

function Conversation({ past: { id, messages: past, seq } }: { past: Past }) {
  const [transport] = useState(() => chatTransport(id, seq))
  const { messages, status, error, sendMessage, addToolApprovalResponse } = useChat({
    id,
    transport,
    messages: past,
    resume: seq > 0, // an answer that is being given continues after a reload
    sendAutomaticallyWhen: lastAssistantMessageIsCompleteWithApprovalResponses,
  })
  return (
    <main>
      <h1>Support desk</h1>
      <ol aria-label="Conversation" aria-busy={status === 'streaming'}>
        {messages.map((message) => (
          <li key={message.id} className={message.role}>
            {message.parts.map((part, index) => (
              <Part key={index} part={part} decide={addToolApprovalResponse} />
            ))}
          </li>
        ))}
      </ol>
      {error && <p role="alert">{error.message}</p>}
      <form
        action={(data) => {
          void sendMessage({ text: String(data.get('text')) })
        }}
      >
        <input name="text" aria-label="Message" placeholder="Please refund order O-7." required />
        <button>Send</button>
      </form>
    </main>
  )
}

/** Resuming begins where the history ends, so that an answer which ends in between is not missed. */
function chatTransport(id: string, seq: number) {
  return new DefaultChatTransport({
    api,
    prepareReconnectToStreamRequest: () => ({ api: `${api}/${id}/stream?after=${seq}` }),
  })
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
  const { id } = part.approval
  return (
    <fieldset>
      <legend>May this happen?</legend>
      <code>{call}</code>
      <button onClick={() => void decide({ id, approved: true })}>Approve</button>
      <button onClick={() => void decide({ id, approved: false })}>Deny</button>
    </fieldset>
  )
}
