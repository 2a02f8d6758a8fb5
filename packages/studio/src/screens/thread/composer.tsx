import {
  useEffect,
  useRef,
  useState,
  type ClipboardEvent,
  type ReactNode,
  type RefObject,
} from 'react'
import { ArrowUp, Paperclip, Undo2, X } from '../../icons/lucide.ts'
import { Approval } from '../../parts/approval.tsx'
import { isAboutUndo } from '../../parts/ask-text.ts'
import { ErrorBox } from '../../parts/error-box.tsx'
import { bytes, line, plural } from '../../parts/format.ts'
import { readSetting, useStore, writeSetting } from '../../state/store.ts'
import { useMay, useStudio } from '../../state/studio.ts'
import type { ShownThread } from '../../state/tree.ts'

/** What a message does to a thread that is busy. */
const IF_BUSY = [
  ['enqueue', 'Send it after this step'],
  ['cut', 'Interrupt: end the answer here and keep what was said'],
  ['restart', 'Restart: the model no longer sees the answer so far'],
] as const

type IfBusy = (typeof IF_BUSY)[number][0]

/** The input for a message: text, files and pasted pictures. Unsent text is kept per thread. */
export function Composer({
  thread,
  isPast,
}: {
  readonly thread: ShownThread
  readonly isPast: boolean
}): ReactNode {
  const { view } = thread
  const message = useMessage(thread)
  const { text, setText, files, setFiles, isBusy, isEmpty, isSending, send, field } = message
  const mayWrite = useMay('threads:write')
  const picker = useRef<HTMLInputElement>(null)
  const isOver = view.status === 'terminated' || view.status === 'erased'
  const onPaste = (event: ClipboardEvent): void => {
    const clipboardFiles = [...event.clipboardData.files]
    if (clipboardFiles.length === 0) return
    event.preventDefault()
    setFiles([...files, ...clipboardFiles])
  }
  if (isOver || isPast || !mayWrite)
    return (
      <footer className="foot">
        {!isPast && <OtherQuestions threadId={thread.threadId} />}
        <p className="soft compose-over">
          {isPast
            ? 'You are looking at an earlier state. Return to the present to write.'
            : isOver
              ? 'This thread has ended and takes no more messages. Its history stays.'
              : 'You may read this thread but not write to it.'}
        </p>
      </footer>
    )
  return (
    <footer className="foot">
      <OtherQuestions threadId={thread.threadId} />
      <Queue thread={thread} />
      {message.error !== undefined && <ErrorBox error={message.error} />}
      <Chips message={message} />
      <form
        className="compose"
        onSubmit={(event) => {
          event.preventDefault()
          void send()
        }}
        onDragOver={(event) => event.preventDefault()}
        onDrop={(event) => {
          event.preventDefault()
          setFiles([...files, ...event.dataTransfer.files])
        }}
      >
        <button
          type="button"
          className="btn quiet icon"
          aria-label="Attach files"
          title="Attach files, or paste a picture"
          onClick={() => picker.current?.click()}
        >
          <Paperclip size={16} aria-hidden />
        </button>
        <input
          ref={picker}
          type="file"
          multiple
          hidden
          aria-label="Files"
          onChange={(event) => {
            setFiles([...files, ...(event.target.files ?? [])])
            event.target.value = ''
          }}
        />
        <textarea
          ref={field}
          className="field"
          rows={1}
          aria-label="Message"
          placeholder={placeholder(thread)}
          value={text}
          onChange={(event) => setText(event.target.value)}
          onPaste={onPaste}
          onKeyDown={(event) => {
            if (event.key === 'Escape') event.currentTarget.blur()
            if (event.key !== 'Enter' || event.shiftKey || event.nativeEvent.isComposing) return
            event.preventDefault()
            void send()
          }}
        />
        <button
          className="btn primary icon"
          aria-label="Send"
          title="Send (Enter)"
          disabled={isEmpty || isSending}
        >
          <ArrowUp size={16} aria-hidden />
        </button>
      </form>
      {isBusy && !isEmpty && <BusyChoice message={message} />}
    </footer>
  )
}

interface WrittenMessage {
  readonly text: string
  setText(text: string): void
  readonly files: readonly File[]
  setFiles(files: readonly File[]): void
  readonly ifBusy: IfBusy
  setIfBusy(ifBusy: IfBusy): void
  readonly isBusy: boolean
  readonly isEmpty: boolean
  readonly isSending: boolean
  readonly error: unknown
  send(): Promise<void>
  readonly field: RefObject<HTMLTextAreaElement | null>
}

/**
 * Questions that belong to no call in the chat: variables that children need, scheduled work, and writes that were not
 * undone when the session failed.
 */
function OtherQuestions({ threadId }: { readonly threadId: string }): ReactNode {
  const { lists } = useStudio()
  return useStore(lists.inbox)
    .items.filter(
      (item) =>
        item.threadId === threadId &&
        (item.kind === 'variables' || item.effectId !== undefined || isAboutUndo(item)),
    )
    .map((item) => <Approval key={item.interruptId} item={item} />)
}

/** The message that the person is writing. Its text is kept until it is sent, even if the page is reloaded. */
function useMessage({ threadId, view }: ShownThread): WrittenMessage {
  const { client } = useStudio()
  const [text, setText] = useState(() => readSetting(`draft.${threadId}`) ?? '')
  const [files, setFiles] = useState<readonly File[]>([])
  const [ifBusy, setIfBusy] = useState<IfBusy>('enqueue')
  const [error, setError] = useState<unknown>()
  const [isSending, setSending] = useState(false)
  const field = useRef<HTMLTextAreaElement>(null)
  useEffect(() => {
    writeSetting(`draft.${threadId}`, text === '' ? undefined : text)
    const box = field.current
    if (!box) return
    box.style.height = 'auto'
    box.style.height = `${Math.min(box.scrollHeight + 2, 240)}px`
  }, [threadId, text])
  const isBusy = /^(?:running|queued|waiting)$/.test(view.status)
  const isEmpty = text.trim() === '' && files.length === 0
  const send = async (): Promise<void> => {
    if (isEmpty || isSending) return
    setSending(true)
    setError(undefined)
    try {
      const attachments: string[] = []
      for (const file of files) {
        const path = `/uploads/${crypto.randomUUID().slice(0, 8)}-${fileName(file)}`
        const body = new Uint8Array(await file.arrayBuffer())
        await client.threads.files.write(threadId, path, body, {
          mediaType: file.type || undefined,
        })
        attachments.push(path)
      }
      await client.threads.send(threadId, {
        text,
        attachments: attachments.length > 0 ? attachments : undefined,
        ifBusy: isBusy ? ifBusy : undefined,
      })
      setText('')
      setFiles([])
    } catch (failure) {
      setError(failure)
    } finally {
      setSending(false)
      field.current?.focus()
    }
  }
  return {
    text,
    setText,
    files,
    setFiles,
    ifBusy,
    setIfBusy,
    isBusy,
    isEmpty,
    isSending,
    error,
    send,
    field,
  }
}

/** The files that go with the message. */
function Chips({ message: { files, setFiles } }: { readonly message: WrittenMessage }): ReactNode {
  if (files.length === 0) return null
  return (
    <ul className="chips" aria-label="Files to send">
      {files.map((file, index) => (
        <li key={index} className="pill">
          {line(file.name, 60)} <span className="soft num">{bytes(file.size)}</span>
          <button
            type="button"
            className="btn quiet icon tiny"
            aria-label={`Remove ${line(file.name, 60)}`}
            onClick={() => setFiles(files.filter((one) => one !== file))}
          >
            <X size={12} aria-hidden />
          </button>
        </li>
      ))}
    </ul>
  )
}

function BusyChoice({
  message: { ifBusy, setIfBusy },
}: {
  readonly message: WrittenMessage
}): ReactNode {
  return (
    <fieldset className="if-busy small">
      <legend className="hidden">What the message does to the running answer</legend>
      {IF_BUSY.map(([value, label]) => (
        <label key={value}>
          <input
            type="radio"
            name="if-busy"
            value={value}
            checked={ifBusy === value}
            onChange={() => setIfBusy(value)}
          />{' '}
          {label}
        </label>
      ))}
    </fieldset>
  )
}

function placeholder({ view }: ShownThread): string {
  const name = line(view.agent, 40)
  if (view.waiting.some((wait) => wait.for === 'person'))
    return `Message ${name}. It is read after the decision.`
  return view.status === 'running' ? `Message ${name} while it works` : `Message ${name}`
}

/** Returns the name of a file with every character replaced that a path should not contain, e.g. slashes. */
function fileName({ name }: File): string {
  return name.replace(/[^\w.-]+/g, '-').slice(-80) || 'file'
}

/** Messages in the queue, which the thread has not taken up yet; each can be taken back. */
function Queue({ thread }: { readonly thread: ShownThread }): ReactNode {
  const { client, notify } = useStudio()
  const { queued } = thread.view
  const takeBack = async (queueId: string): Promise<void> => {
    const isBack = await client.threads.unsend(thread.threadId, queueId)
    notify(isBack ? 'Withdrawn.' : 'Too late: the agent has read it already.')
  }
  if (queued.length === 0) return null
  return (
    <ul className="queue small" aria-label={`${plural(queued.length, 'message')} not read yet`}>
      {queued.map((message) => {
        const queueId = thread.facts.queueIds.get(message.id)
        return (
          <li key={message.id}>
            <span className="soft">not read yet</span>{' '}
            <span className="cut">{line(message.text, 200)}</span>
            {queueId !== undefined && (
              <button
                type="button"
                className="btn quiet tiny"
                onClick={() => void takeBack(queueId)}
              >
                <Undo2 size={13} aria-hidden /> Withdraw
              </button>
            )}
          </li>
        )
      })}
    </ul>
  )
}
