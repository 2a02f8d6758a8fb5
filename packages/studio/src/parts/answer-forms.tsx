import { useEffect, useRef, useState, type FormEvent, type ReactNode } from 'react'
import type { WaitingItem } from '@skein/runtime'
import { useResource } from '../state/resource.ts'
import { useStudio } from '../state/studio.ts'
import { ArgumentsFields, readArguments } from './arguments.tsx'
import { Dialog } from './dialog.tsx'
import { ErrorBox } from './error-box.tsx'
import { Confirmation, DecisionButton } from './decision-button.tsx'
import { line } from './format.ts'
import { indentedJson } from './json.tsx'
import type { Deciding } from './approval.tsx'
import { effectText, isAboutUndo, sentence } from './ask-text.ts'

export function idOf({ threadId, interruptId }: WaitingItem): {
  threadId: string
  interruptId: string
} {
  return { threadId, interruptId }
}

/** What identifies the call that an item asks about, in all its details that a decision depends on. */
export function callOf(item: WaitingItem): string {
  return [item.threadId, item.interruptId, digestOf(item)].join(' ')
}

export function digestOf({ request }: WaitingItem): string | undefined {
  return request?.digest
}

/** Enter in a field of a form decides nothing: only the button does. */
function stay(event: FormEvent): void {
  event.preventDefault()
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
  const deny = async (): Promise<void> => {
    const isDone = await decide.run((inbox) => inbox.deny({ ...idOf(item), reason }), 'Denied')
    if (isDone) onClose()
  }
  return (
    <Dialog title="Deny this call" onClose={onClose}>
      <p className="soft">{sentence(item)}</p>
      <form className="stack" onSubmit={stay}>
        <label>
          <span>Reason. The model reads it and can try something else.</span>
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
          <DecisionButton
            call={callOf(item)}
            className="btn no"
            isDisabled={decide.isBusy || reason.trim() === ''}
            onDecide={() => void deny()}
          >
            Deny
          </DecisionButton>
          <button type="button" className="btn quiet" onClick={onClose}>
            Cancel
          </button>
        </div>
      </form>
    </Dialog>
  )
}

export function ChangeDialog({ item, decide, onClose }: DialogProps): ReactNode {
  const [text, setText] = useState(() => indentedJson(item.sentArguments ?? item.arguments))
  const input = readArguments(text)
  const { client } = useStudio()
  const agent = item.path.at(-1)
  const detail = useResource(agent && `agent ${agent}`, () => client.agents.get(agent!)).value
  const tool = detail?.sides
    .flatMap(({ tools }) => tools)
    .find(({ name }) => name === item.toolName)
  const [isConfirming, setConfirming] = useState(false)
  const approve = async (): Promise<void> => {
    if (typeof input === 'string') return
    const isDone = await decide.run(
      (inbox) => inbox.approve({ ...idOf(item), digest: digestOf(item), with: input as never }), // JSON was parsed from the field
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
      <form className="stack" onSubmit={stay}>
        <ArgumentsFields
          text={text}
          setText={(next) => {
            setText(next)
            setConfirming(false)
          }}
          schema={tool?.parameters}
        />
        {decide.error !== undefined && <ErrorBox error={decide.error} />}
        <div className="btns">
          <DecisionButton
            call={`${callOf(item)} ${text}`}
            className="btn go"
            isDisabled={decide.isBusy || typeof input === 'string' || isConfirming}
            onDecide={() => (item.isIrreversible === true ? setConfirming(true) : void approve())}
          >
            Approve these arguments
          </DecisionButton>
          <button type="button" className="btn quiet" onClick={onClose}>
            Cancel
          </button>
        </div>
        {isConfirming && typeof input !== 'string' && (
          <Confirmation
            call={`${callOf(item)} ${text}`}
            effect={effectText({ toolName: item.toolName, arguments: input as never })} // JSON was parsed from the field
            verb={`Yes, run ${line(item.toolName, 60)}`}
            isBusy={decide.isBusy}
            onConfirm={() => void approve()}
            onCancel={() => setConfirming(false)}
          />
        )}
      </form>
    </Dialog>
  )
}

/** The question whether a call took effect, which was cut off by a crash, a time limit or a stop. */
export function InDoubtForm({
  item,
  decide,
  hasEnded,
}: Omit<DialogProps, 'onClose'> & {
  /** Whether the call has ended with an unknown outcome, so that nothing waits for the answer. */
  readonly hasEnded: boolean
}): ReactNode {
  const settle = (found: 'applied' | 'absent' | 'unknown', word: string): void =>
    void decide.run((inbox) => inbox.settle(idOf(item), found), word)
  const { question } = (item.question ?? {}) as { readonly question?: unknown }
  const isUndo = isAboutUndo(item)
  return (
    <>
      <p>
        {typeof question === 'string' && <b>{line(question, 300)}</b>} Look at the other system,
        then say what you found.
      </p>
      <p className="soft small">{consequence(item, hasEnded)}</p>
      <div className="btns">
        <DecisionButton
          call={callOf(item)}
          isDisabled={decide.isBusy}
          onDecide={() => settle('applied', isUndo ? 'It still has its effect' : 'It happened')}
        >
          {isUndo ? 'It still has its effect' : 'It happened'}
        </DecisionButton>
        <DecisionButton
          call={callOf(item)}
          isDisabled={decide.isBusy}
          onDecide={() => settle('absent', isUndo ? 'It has no effect' : 'It did not happen')}
        >
          {isUndo ? 'It has no effect' : 'It did not happen'}
        </DecisionButton>
        <DecisionButton
          call={callOf(item)}
          className="btn quiet"
          isDisabled={decide.isBusy}
          onDecide={() => settle('unknown', 'It cannot be known')}
        >
          It cannot be known
        </DecisionButton>
      </div>
    </>
  )
}

/** What follows from the answer. */
function consequence(item: WaitingItem, hasEnded: boolean): string {
  const { undo } = (item.question ?? {}) as { readonly undo?: unknown }
  if (undo === 'in_doubt') return 'If it still has its effect, it is undone now.'
  if (undo !== undefined) return 'Nothing runs again. Your answer is recorded in the audit log.'
  if (hasEnded)
    return 'The thread did not wait for this. Nothing runs again: the agent reads what you found when it works next.'
  const approval = item.risk === 'write_high_risk' ? ', after a new approval' : ''
  return `If it did not happen, the call runs again${approval}. If that cannot be known, it does not run again, and the agent reads that.`
}

export function AnswerForm({ item, decide }: Omit<DialogProps, 'onClose'>): ReactNode {
  const [text, setText] = useState('')
  const answer = (): void => {
    void decide.run(
      (inbox) => inbox.answer(idOf(item), { type: 'result', value: valueOf(text) as never }),
      'Answered',
    ) // any JSON is an answer
  }
  return (
    <form className="stack" onSubmit={stay}>
      <label>
        <span className="hidden">Answer</span>
        <textarea
          className="field"
          rows={2}
          placeholder="Your answer, as text or JSON. It becomes the result of the call."
          value={text}
          onChange={(event) => setText(event.target.value)}
        />
      </label>
      <div className="btns">
        <DecisionButton
          call={callOf(item)}
          isDisabled={decide.isBusy || text.trim() === ''}
          onDecide={answer}
        >
          Answer
        </DecisionButton>
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
  const provide = (): void => {
    const { threadId, interruptId } = item
    void decide.run(
      async () => {
        await client.threads.variables.provide(threadId, interruptId, values)
      },
      'Saved. The child starts',
      'Saved. The child starts.',
    )
  }
  return (
    <form className="stack" onSubmit={stay}>
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
        <DecisionButton
          call={callOf(item)}
          isDisabled={decide.isBusy || !isComplete}
          onDecide={provide}
        >
          Save {variables.length === 1 ? 'this value' : 'these values'}
        </DecisionButton>
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
