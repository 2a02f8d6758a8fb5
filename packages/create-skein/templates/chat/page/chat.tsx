import { useChat, type UIMessage } from '@ai-sdk/react'
import {
  DefaultChatTransport,
  getToolName,
  isToolUIPart,
  lastAssistantMessageIsCompleteWithApprovalResponses,
} from 'ai'
import {
  useEffect,
  useRef,
  useState,
  type KeyboardEvent,
  type ReactNode,
  type RefObject,
} from 'react'
import { Markdown } from './markdown.tsx'
import { authorization, SignedOut, signOut } from './session.ts'

const api = '/agents/assistant/chat'

/** The id of the chat is in the address, so that a reload finds the same thread. */
const earlierId = location.hash.slice(1)
const id = earlierId || crypto.randomUUID()
location.hash = id

/** The messages so far, and the number of the last event that they contain. */
export interface Past {
  readonly messages: UIMessage[]
  readonly seq: number
}

/** Loads a chat that was begun before. */
export async function loadPast(): Promise<Past> {
  const headers = await authorization()
  const response = earlierId === '' ? undefined : await fetch(`${api}/${id}`, { headers })
  if (response === undefined || response.status === 404) return { messages: [], seq: 0 }
  if (!response.ok) throw new Error(`The chat cannot be read (${response.status}).`)
  return (await response.json()) as Past
}

/** Resuming begins where the history ends, so that an answer which ends in between is not missed. */
function chatTransport(seq: number): DefaultChatTransport<UIMessage> {
  return new DefaultChatTransport({
    api,
    headers: authorization, // asked before every request, because tokens expire
    prepareReconnectToStreamRequest: ({ headers }) => ({
      api: `${api}/${id}/stream?after=${seq}`,
      headers,
    }),
  })
}

interface ChatProps {
  past: Past
  signedOut: () => void
}

export function Chat({ past, signedOut }: ChatProps): ReactNode {
  const [transport] = useState(() => chatTransport(past.seq))
  const { messages, status, error, sendMessage, stop, addToolApprovalResponse } = useChat({
    id,
    transport,
    messages: past.messages,
    resume: past.seq > 0, // after a reload, shows an answer that has not ended yet
    sendAutomaticallyWhen: lastAssistantMessageIsCompleteWithApprovalResponses,
    onError: (cause) => cause instanceof SignedOut && signedOut(),
  })
  const isBusy = status === 'submitted' || status === 'streaming'
  const { end, scrollToEnd } = useScrollToEnd(messages)

  /** `stop` only closes the connection; the run is stopped on the server. */
  async function stopRun(): Promise<void> {
    await fetch(`${api}/${id}/stop`, { method: 'POST', headers: await authorization() })
    await stop()
  }

  return (
    <main>
      <header>
        <h1>Assistant</h1>
        <button className="quiet" onClick={() => location.assign('/')}>
          New chat
        </button>
        {signOut && (
          <button className="quiet" onClick={() => void signOut!()}>
            Sign out
          </button>
        )}
      </header>
      <ol aria-label="Conversation" aria-busy={isBusy}>
        {messages.map((message) => (
          <li key={message.id} className={message.role}>
            {message.parts.map((part, index) => (
              <Part
                key={index}
                part={part}
                isOwn={message.role === 'user'}
                decide={addToolApprovalResponse}
              />
            ))}
          </li>
        ))}
        {status === 'submitted' && <li className="wait">…</li>}
      </ol>
      {error && <p role="alert">{errorText(error)}</p>}
      <Composer
        isBusy={isBusy}
        isFirst={messages.length === 0}
        send={(text) => {
          scrollToEnd()
          void sendMessage({ text })
        }}
        stop={() => void stopRun()}
      />
      <div ref={end} />
    </main>
  )
}

interface ScrollToEnd {
  /** The last element of the page. */
  readonly end: RefObject<HTMLDivElement | null>
  readonly scrollToEnd: () => void
}

/** Keeps the end of the chat in view while it grows, unless the person has scrolled up. */
function useScrollToEnd(messages: readonly UIMessage[]): ScrollToEnd {
  const end = useRef<HTMLDivElement>(null)
  const isAtEnd = useRef(true)
  useEffect(() => {
    const observer = new IntersectionObserver(
      ([entry]) => (isAtEnd.current = entry?.isIntersecting === true),
      { rootMargin: '0px 0px 150px 0px' },
    )
    observer.observe(end.current!)
    return () => observer.disconnect()
  }, [])
  useEffect(() => {
    if (isAtEnd.current) end.current?.scrollIntoView({ block: 'end' })
  }, [messages])
  return { end, scrollToEnd: () => void (isAtEnd.current = true) }
}

/** The server answers with `{ error: { message, hint } }`; the AI SDK has the text of the answer as its message. */
function errorText({ message }: Error): string {
  try {
    const { error } = JSON.parse(message) as { error: { message: string; hint?: string } }
    return [error.message, error.hint].filter(Boolean).join(' ')
  } catch {
    return message
  }
}

/** How a call ended; calls in other states have not ended yet. */
const STATES: Readonly<Record<string, string>> = {
  'output-available': 'done',
  'output-error': 'failed',
  'output-denied': 'denied',
}

interface PartProps {
  part: UIMessage['parts'][number]
  isOwn: boolean
  decide: ReturnType<typeof useChat>['addToolApprovalResponse']
}

function Part({ part, isOwn, decide }: PartProps): ReactNode {
  if (part.type === 'text')
    return isOwn ? <p className="typed">{part.text}</p> : <Markdown text={part.text} />
  if (!isToolUIPart(part)) return null
  const call = `${getToolName(part)} ${JSON.stringify(part.input ?? {})}`
  if (part.state !== 'approval-requested')
    return <p className="call">{`${call} · ${STATES[part.state] ?? 'running'}`}</p>
  const approvalId = part.approval.id
  return (
    <fieldset>
      <legend>Allow this?</legend>
      <code>{call}</code>
      <div className="buttons">
        <button onClick={() => void decide({ id: approvalId, approved: true })}>Approve</button>
        <button className="quiet" onClick={() => void decide({ id: approvalId, approved: false })}>
          Deny
        </button>
      </div>
    </fieldset>
  )
}

interface ComposerProps {
  isBusy: boolean
  isFirst: boolean
  send: (text: string) => void
  stop: () => void
}

/** Enter sends; Shift and Enter begin a new line. On a phone, Enter is a new line and the button sends. */
function Composer({ isBusy, isFirst, send, stop }: ComposerProps): ReactNode {
  const [text, setText] = useState('')

  function submit(): void {
    if (isBusy || text.trim() === '') return
    send(text)
    setText('')
  }

  function onKeyDown(event: KeyboardEvent): void {
    const isTouch = matchMedia('(pointer: coarse)').matches
    const isEnter = event.key === 'Enter' && !event.shiftKey && !event.nativeEvent.isComposing
    if (!isEnter || isTouch) return
    event.preventDefault()
    submit()
  }

  return (
    <form
      className="composer"
      onSubmit={(event) => {
        event.preventDefault()
        submit()
      }}
    >
      <textarea
        aria-label="Message"
        autoFocus
        rows={1}
        placeholder={isFirst ? 'note buy milk' : 'Message'}
        value={text}
        onChange={(event) => setText(event.target.value)}
        onKeyDown={onKeyDown}
      />
      {isBusy ? (
        <button type="button" onClick={stop}>
          Stop
        </button>
      ) : (
        <button>Send</button>
      )}
    </form>
  )
}
