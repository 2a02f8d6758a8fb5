import { useEffect, useRef, useState, type FormEvent, type ReactNode } from 'react'
import type { WaitingItem } from '@skein/runtime'
import { useResource, useStudio } from '../state/studio.ts'
import { ArgumentsFields, parsedArguments } from './arguments.tsx'
import { Dialog, ErrorBox } from './basics.tsx'
import { line } from './format.ts'
import { indentedJson } from './json.tsx'
import type { Deciding } from './approval.tsx'
import { sentence } from './ask-facts.tsx'

export function idOf({ threadId, interruptId }: WaitingItem): {
  threadId: string
  interruptId: string
} {
  return { threadId, interruptId }
}

export function digestOf({ request }: WaitingItem): string | undefined {
  return request?.digest
}

interface DialogProps {
  readonly item: WaitingItem
  readonly decide: Deciding
  readonly onClose: () => void
}

export function DenyDialog({ item, decide, onClose }: DialogProps): ReactNode {
  const [reason, setReason] = useState('')
  const field = useRef<HTMLTextAreaElement>(null)
  useEffect(() => field.current?.focus(), [])
  const submit = async (event: FormEvent): Promise<void> => {
    event.preventDefault()
    if (reason.trim() === '') return field.current?.focus()
    const isDone = await decide.run((inbox) => inbox.deny({ ...idOf(item), reason }), 'Denied')
    if (isDone) onClose()
  }
  return (
    <Dialog title="Deny this call" onClose={onClose}>
      <p className="soft">{sentence(item)}</p>
      <form className="stack" onSubmit={(event) => void submit(event)}>
        <label>
          <span>Reason. The model reads it and can do something else.</span>
          <textarea
            ref={field}
            className="field"
            rows={3}
            required
            value={reason}
            onChange={(event) => setReason(event.target.value)}
          />
        </label>
        {decide.error !== undefined && <ErrorBox error={decide.error} />}
        <div className="btns">
          <button className="btn no" disabled={decide.isBusy || reason.trim() === ''}>
            Deny
          </button>
          <button type="button" className="btn quiet" onClick={onClose}>
            Cancel
          </button>
        </div>
      </form>
    </Dialog>
  )
}

export function ChangeDialog({ item, decide, onClose }: DialogProps): ReactNode {
  const [text, setText] = useState(() => indentedJson(item.arguments))
  const parsed = parsedArguments(text)
  const { client } = useStudio()
  const agent = item.path.at(-1)
  const detail = useResource(agent && `agent ${agent}`, () => client.agents.get(agent!)).value
  const tool = detail?.sides
    .flatMap(({ tools }) => tools)
    .find(({ name }) => name === item.toolName)
  const submit = async (event: FormEvent): Promise<void> => {
    event.preventDefault()
    if (typeof parsed === 'string') return
    const isDone = await decide.run(
      (inbox) => inbox.approve({ ...idOf(item), digest: digestOf(item), with: parsed as never }), // JSON was parsed from the field
      'Approved with changes',
    )
    if (isDone) onClose()
  }
  return (
    <Dialog title="Approve with changes" onClose={onClose}>
      <p className="soft">
        The call as the model made it is denied. A new call with these arguments takes its place,
        and is approved in your name.
      </p>
      <form
        className="stack"
        onSubmit={(event) => void submit(event)}
        onKeyDown={(event) => {
          // Enter never approves: only the button does.
          if (event.key === 'Enter' && event.target instanceof HTMLInputElement)
            event.preventDefault()
        }}
      >
        <ArgumentsFields text={text} setText={setText} schema={tool?.parameters} />
        {decide.error !== undefined && <ErrorBox error={decide.error} />}
        <div className="btns">
          <button className="btn go" disabled={decide.isBusy || typeof parsed === 'string'}>
            Approve these arguments
          </button>
          <button type="button" className="btn quiet" onClick={onClose}>
            Cancel
          </button>
        </div>
      </form>
    </Dialog>
  )
}

export function InDoubtForm({ item, decide }: Omit<DialogProps, 'onClose'>): ReactNode {
  const settle = (found: 'applied' | 'absent' | 'unknown', word: string): void =>
    void decide.run((inbox) => inbox.settle(idOf(item), found), word)
  return (
    <>
      <p>
        The process ended while this call ran. Look at the other system, then say what you found.
      </p>
      <div className="btns">
        <button
          type="button"
          className="btn"
          disabled={decide.isBusy}
          onClick={() => settle('applied', 'It happened')}
        >
          It happened
        </button>
        <button
          type="button"
          className="btn"
          disabled={decide.isBusy}
          onClick={() => settle('absent', 'It did not happen')}
        >
          It did not happen: run it again
        </button>
        <button
          type="button"
          className="btn quiet"
          disabled={decide.isBusy}
          onClick={() => settle('unknown', 'Nobody knows')}
        >
          Nobody knows: do not run it again
        </button>
      </div>
    </>
  )
}

export function AnswerForm({ item, decide }: Omit<DialogProps, 'onClose'>): ReactNode {
  const [text, setText] = useState('')
  const submit = (event: FormEvent): void => {
    event.preventDefault()
    if (text.trim() === '') return
    void decide.run(
      (inbox) => inbox.answer(idOf(item), { type: 'result', value: valueOf(text) as never }),
      'Answered',
    ) // any JSON is an answer
  }
  return (
    <form className="stack" onSubmit={submit}>
      <label>
        <span className="hidden">Answer</span>
        <textarea
          className="field"
          rows={2}
          placeholder="Your answer: text or JSON. The tool's call ends with it."
          value={text}
          onChange={(event) => setText(event.target.value)}
        />
      </label>
      <div className="btns">
        <button className="btn" disabled={decide.isBusy || text.trim() === ''}>
          Answer
        </button>
      </div>
    </form>
  )
}

/**
 * Fields for the variables that a child needs before it can start. Secrets are sent to the server and
 * never shown again.
 */
export function VariablesForm({ item, decide }: Omit<DialogProps, 'onClose'>): ReactNode {
  const { client } = useStudio()
  const { variables = [] } = item
  const [values, setValues] = useState<Readonly<Record<string, string>>>({})
  const isComplete = variables.every(({ name }) => (values[name] ?? '') !== '')
  const hasSecrets = variables.some(({ type }) => type === 'secret')
  const submit = (event: FormEvent): void => {
    event.preventDefault()
    if (!isComplete) return
    const { threadId, interruptId } = item
    void decide.run(
      async () => {
        await client.threads.variables.provide(threadId, interruptId, values)
      },
      'Given. The child starts',
      'Given. The child starts.',
    )
  }
  return (
    <form className="stack" onSubmit={submit}>
      {variables.map(({ name, type, description }) => (
        <label key={name}>
          <span>
            <span className="mono">{line(name, 60)}</span>
            {description !== undefined && <span className="soft"> {line(description, 300)}</span>}
          </span>
          <input
            className="field"
            type={type === 'secret' ? 'password' : 'text'}
            autoComplete="off"
            value={values[name] ?? ''}
            onChange={(event) => setValues({ ...values, [name]: event.target.value })}
          />
        </label>
      ))}
      {hasSecrets && (
        <p className="soft small">
          Secrets go to the server once. They are kept encrypted and never shown again.
        </p>
      )}
      <div className="btns">
        <button className="btn" disabled={decide.isBusy || !isComplete}>
          Give {variables.length === 1 ? 'this value' : 'these values'}
        </button>
      </div>
    </form>
  )
}

function valueOf(text: string): unknown {
  try {
    return JSON.parse(text)
  } catch {
    return text
  }
}
