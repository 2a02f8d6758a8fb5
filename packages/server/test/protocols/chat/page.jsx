import { StrictMode, useEffect, useState } from 'react'
import { createRoot } from 'react-dom/client'
import { useChat } from '@ai-sdk/react'
import { DefaultChatTransport, lastAssistantMessageIsCompleteWithApprovalResponses } from 'ai'

// #region chat
const api = '/agents/desk/chat'
const sendAutomaticallyWhen = lastAssistantMessageIsCompleteWithApprovalResponses

function useDesk(id, { messages, seq }) {
  const [transport] = useState(() => {
    // Resuming begins where the history ends: an answer which ends in between is not missed.
    const reconnect = () => ({ api: `${api}/${id}/stream?after=${seq}` })
    return new DefaultChatTransport({ api, prepareReconnectToStreamRequest: reconnect })
  })
  return useChat({ id, messages, transport, resume: seq > 0, sendAutomaticallyWhen })
}
// #endregion chat

// #region open
async function openChat(id) {
  const response = await fetch(`${api}/${id}`)
  return response.ok ? response.json() : { messages: [], seq: 0 }
}
// #endregion open

// #region stop
async function stopRun(id, stop) {
  await fetch(`${api}/${id}/stop`, { method: 'POST' })
  await stop()
}
// #endregion stop

const id = new URLSearchParams(location.search).get('chat') ?? 'page'

function Chat({ initial }) {
  const { messages, status, error, sendMessage, stop, addToolApprovalResponse } = useDesk(
    id,
    initial,
  )
  return (
    <main>
      <p id="status">{status}</p>
      <p id="error">{error?.message}</p>
      <ol>
        {messages.map((message) => (
          <li key={message.id} data-role={message.role}>
            {message.parts.map((part, index) => (
              <Part key={index} part={part} decide={addToolApprovalResponse} />
            ))}
          </li>
        ))}
      </ol>
      <form
        onSubmit={(event) => {
          event.preventDefault()
          const field = event.currentTarget.elements.namedItem('text')
          void sendMessage({ text: field.value })
          field.value = ''
        }}
      >
        <input name="text" />
        <button id="send">Send</button>
      </form>
      <button id="stop" onClick={() => void stopRun(id, stop)}>
        Stop
      </button>
    </main>
  )
}

// #region approval
function Part({ part, decide }) {
  if (part.type === 'text') return <span className="text">{part.text}</span>
  if (!part.type.startsWith('tool-')) return null
  const { id } = part.approval ?? {}
  return (
    <div className="tool" data-state={part.state}>
      {part.type} {JSON.stringify(part.input)} {part.output}
      {part.state === 'approval-requested' && (
        <>
          <button onClick={() => decide({ id, approved: true })}>Yes</button>
          <button onClick={() => decide({ id, approved: false, reason: 'Too much' })}>No</button>
        </>
      )}
    </div>
  )
}
// #endregion approval

function Page() {
  const [initial, setInitial] = useState()
  useEffect(() => {
    void openChat(id).then(setInitial)
  }, [])
  return initial ? <Chat initial={initial} /> : null
}

createRoot(document.getElementById('root')).render(
  <StrictMode>
    <Page />
  </StrictMode>,
)
