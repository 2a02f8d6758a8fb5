import { StrictMode, useEffect, useState } from 'react'
import { createRoot } from 'react-dom/client'
import { useChat } from '@ai-sdk/react'
import { DefaultChatTransport, lastAssistantMessageIsCompleteWithApprovalResponses } from 'ai'

const api = '/agents/desk/chat'
const id = new URLSearchParams(location.search).get('chat') ?? 'page'

function Chat({ initial }) {
  const { messages, status, error, sendMessage, stop, addToolApprovalResponse } = useChat({
    id,
    messages: initial,
    resume: true,
    transport: new DefaultChatTransport({ api }),
    sendAutomaticallyWhen: lastAssistantMessageIsCompleteWithApprovalResponses,
  })
  const stopAll = async () => {
    await fetch(`${api}/${id}/stop`, { method: 'POST' })
    await stop()
  }
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
      <button id="stop" onClick={() => void stopAll()}>
        Stop
      </button>
    </main>
  )
}

function Part({ part, decide }) {
  if (part.type === 'text') return <span className="text">{part.text}</span>
  if (!part.type.startsWith('tool-')) return null
  return (
    <div className="tool" data-state={part.state}>
      {part.type} {JSON.stringify(part.input)} {part.output}
      {part.state === 'approval-requested' && (
        <>
          <button className="yes" onClick={() => decide({ id: part.approval.id, approved: true })}>
            Yes
          </button>
          <button className="no" onClick={() => decide({ id: part.approval.id, approved: false })}>
            No
          </button>
        </>
      )}
    </div>
  )
}

function Page() {
  const [initial, setInitial] = useState()
  useEffect(() => {
    void fetch(`${api}/${id}`)
      .then((response) => (response.ok ? response.json() : { messages: [] }))
      .then(({ messages }) => setInitial(messages))
  }, [])
  return initial ? <Chat initial={initial} /> : null
}

createRoot(document.getElementById('root')).render(
  <StrictMode>
    <Page />
  </StrictMode>,
)
