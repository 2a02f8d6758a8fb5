import { Check, Pencil, X } from 'lucide-react'
import { useEffect, useId, useRef, useState, type FormEvent, type ReactNode } from 'react'
import type { WaitingItem } from '@skein/runtime'
import { escapeJson, safeText } from '@skein/base/safe-text'
import type { EvidenceFact, GateVerdict } from '../state/facts.ts'
import { useKeys } from '../state/keys.ts'
import { useMay, useResource, useStudio } from '../state/studio.ts'
import { ArgumentsFields, parsedArguments } from './arguments.tsx'
import { Copy, Dialog, ErrorBox, Time, useNow } from './basics.tsx'
import { Checklist, EvidenceList } from './evidence.tsx'
import { GrantMenu } from './grants.tsx'
import { age, dateText, line } from './format.ts'
import { Json, indentedJson } from './json.tsx'

/** What a person can do about a waiting call. */
type Decision = 'approve' | 'change' | 'deny'

const RISKS: Readonly<Record<string, string>> = {
  read_only: 'reads only',
  write_low_risk: 'low: writes',
  write_high_risk: 'high: writes, and needs a person',
  destructive: 'high: cannot be taken back',
}

/** A call that waits for a person: what would happen, the evidence for it, and the buttons. */
export function Approval({
  item,
  evidence = [],
  verdicts = [],
  hasKeys = false,
  children,
}: {
  readonly item: WaitingItem
  readonly evidence?: readonly EvidenceFact[]
  readonly verdicts?: readonly GateVerdict[]
  /** Whether the keys `a`, `e` and `d` decide about this call. Only one call on a page has them. */
  readonly hasKeys?: boolean
  /** Where the question comes from. */
  readonly children?: ReactNode
}): ReactNode {
  const { lists } = useStudio()
  const [dialog, setDialog] = useState<'change' | 'deny'>()
  const decide = useDecision(item)
  const title = useId()
  const mayDecide = useMay('approvals:write')
  const choose = (decision: Decision): void => {
    if (decide.outcome !== undefined || decide.isBusy || !mayDecide) return
    if (decision === 'approve')
      void decide.run(
        (inbox) => inbox.approve({ ...idOf(item), digest: digestOf(item) }),
        'Approved',
      )
    else setDialog(decision)
  }
  const card = useRef<HTMLElement>(null)
  const byKey = (decision: Decision): void => {
    if (item.kind !== 'approval') return
    // A call that is not on the screen cannot be decided: the first press of the key scrolls to it.
    if (isOnScreen(card.current)) choose(decision)
    else card.current?.scrollIntoView({ block: 'center' })
  }
  useKeys(
    hasKeys
      ? [
          { keys: 'a', does: 'Approve', run: () => byKey('approve') },
          { keys: 'e', does: 'Approve with changes', run: () => byKey('change') },
          { keys: 'd', does: 'Deny, with a reason', run: () => byKey('deny') },
        ]
      : [],
  )
  if (decide.outcome !== undefined)
    return (
      <Decided item={item} outcome={decide.outcome} done={lists.refresh}>
        {children}
      </Decided>
    )
  return (
    <section className="ask" ref={card} aria-labelledby={title}>
      <h2 id={title} className="ask-title">
        {sentence(item)}
      </h2>
      {children}
      <AskFacts item={item} />
      {(evidence.length > 0 || verdicts.length > 0) && (
        <details className="ask-evidence" open>
          <summary>Evidence so far</summary>
          <Checklist verdicts={verdicts} />
          <EvidenceList evidence={evidence} />
        </details>
      )}
      {decide.error !== undefined && <ErrorBox error={decide.error} />}
      {item.kind === 'approval' && (
        <Choices
          item={item}
          isBusy={decide.isBusy || !mayDecide}
          hasKeys={hasKeys}
          choose={choose}
          approveFor={(grantForMs, words) =>
            void decide.run(
              (inbox) => inbox.approve({ ...idOf(item), digest: digestOf(item), grantForMs }),
              `Approved ${words}`,
            )
          }
        />
      )}
      {!mayDecide && <p className="soft">You may see this but not decide it.</p>}
      {item.kind === 'in_doubt' && mayDecide && <InDoubt decide={decide} item={item} />}
      {item.kind === 'input' && mayDecide && <AnswerForm decide={decide} item={item} />}
      {dialog === 'deny' && (
        <DenyDialog item={item} decide={decide} onClose={() => setDialog(undefined)} />
      )}
      {dialog === 'change' && (
        <ChangeDialog item={item} decide={decide} onClose={() => setDialog(undefined)} />
      )}
    </section>
  )
}

function Choices({
  item,
  isBusy,
  hasKeys,
  choose,
  approveFor,
}: {
  readonly item: WaitingItem
  readonly isBusy: boolean
  readonly hasKeys: boolean
  readonly choose: (decision: Decision) => void
  readonly approveFor: (forMs: number, words: string) => void
}): ReactNode {
  return (
    <div className="btns">
      <button type="button" className="btn go" disabled={isBusy} onClick={() => choose('approve')}>
        <Check size={15} aria-hidden /> Approve {hasKeys && <kbd>a</kbd>}
      </button>
      {item.effectId === undefined && (
        <button type="button" className="btn" disabled={isBusy} onClick={() => choose('change')}>
          <Pencil size={14} aria-hidden /> Approve with changes {hasKeys && <kbd>e</kbd>}
        </button>
      )}
      {item.effectId === undefined && item.request?.quorum === 1 && (
        <GrantMenu tool={item.toolName} isBusy={isBusy} approve={approveFor} />
      )}
      <button type="button" className="btn no" disabled={isBusy} onClick={() => choose('deny')}>
        <X size={15} aria-hidden /> Deny… {hasKeys && <kbd>d</kbd>}
      </button>
    </div>
  )
}

type Inbox = ReturnType<typeof useStudio>['client']['inbox']

interface Deciding {
  readonly isBusy: boolean
  readonly error: unknown
  /** What became of it, in words. */
  readonly outcome: string | undefined
  run(work: (inbox: Inbox) => Promise<void>, word: string): Promise<boolean>
}

/** Sends a decision once. If somebody else has decided first, their decision is shown. */
function useDecision(item: WaitingItem): Deciding {
  const { client, notify, lists } = useStudio()
  const [isBusy, setBusy] = useState(false)
  const [error, setError] = useState<unknown>()
  const [outcome, setOutcome] = useState<string>()
  return {
    isBusy,
    error,
    outcome,
    async run(work, word) {
      setBusy(true)
      setError(undefined)
      try {
        await work(client.inbox)
        notify(`${word}: ${sentence(item)}`)
        setOutcome(`${word}.`)
        lists.refresh()
        return true
      } catch (failure) {
        // If somebody else has decided, or the call is over, that is shown instead of the error.
        const before = await firstDecision(client, item).catch(() => undefined)
        if (before === undefined) setError(failure)
        else setOutcome(before)
        return before !== undefined
      } finally {
        setBusy(false)
      }
    },
  }
}

/** Asks who has decided, and what; undefined while nobody has. */
async function firstDecision(
  client: ReturnType<typeof useStudio>['client'],
  item: WaitingItem,
): Promise<string | undefined> {
  const { decision, status } = await client.inbox.get(idOf(item))
  if (status === 'waiting') return undefined
  if (!decision)
    return status === 'over'
      ? 'It no longer waits: the thread was stopped, or the time was over.'
      : 'Somebody else was first.'
  const word = { approve: 'approved', deny: 'denied' }[decision.type as string] ?? 'answered'
  return `${line(decision.by ?? 'Somebody', 60)} was first and ${word} it. Nothing was changed.`
}

/** Shows the decision that was made, with a link to the thread. */
function Decided({
  item,
  outcome,
  done,
  children,
}: {
  readonly item: WaitingItem
  readonly outcome: string
  readonly done: () => void
  readonly children?: ReactNode
}): ReactNode {
  useEffect(done, [])
  return (
    <section className="ask decided">
      <p role="status">
        <b>{outcome}</b>
      </p>
      <p>{sentence(item)}</p>
      {children}
    </section>
  )
}

function idOf({ threadId, interruptId }: WaitingItem): { threadId: string; interruptId: string } {
  return { threadId, interruptId }
}

function digestOf({ request }: WaitingItem): string | undefined {
  return request?.digest
}

/** Returns a sentence that says what would happen. Arguments of the call cannot change its wording. */
export function sentence({ toolName, kind, effectId, arguments: args }: WaitingItem): string {
  const name = line(toolName, 60)
  const entries = Object.entries(
    args && typeof args === 'object' && !Array.isArray(args) ? args : {},
  )
  const few = entries
    .slice(0, 3)
    .map(
      ([key, value]) =>
        `${line(key, 30)} ${line(typeof value === 'string' ? value : JSON.stringify(value), 40)}`,
    )
    .join(', ')
  const more = entries.length > 3 ? ` and ${entries.length - 3} more` : ''
  const what = few === '' ? name : `${name}: ${few}${more}`
  if (kind === 'in_doubt') return `Did it happen? ${what}`
  if (kind === 'input') return `An answer is needed for ${what}`
  return effectId === undefined ? `Run ${what}` : `Run the scheduled ${what}`
}

function AskFacts({ item }: { readonly item: WaitingItem }): ReactNode {
  const now = useNow()
  const { request, risk, expiresAt, isIrreversible, question } = item
  const rollback = request?.action.rollback
  return (
    <dl className="facts">
      {question !== undefined && (
        <>
          <dt>Question</dt>
          <dd>
            {typeof question === 'string' ? (
              safeText(question)
            ) : (
              <Json value={question} label="Question" />
            )}
          </dd>
        </>
      )}
      <dt>Arguments</dt>
      <dd>
        <Arguments value={item.arguments} />
      </dd>
      {risk !== undefined && (
        <>
          <dt>Risk</dt>
          <dd>{RISKS[risk] ?? risk}</dd>
        </>
      )}
      {item.kind === 'approval' && (
        <>
          <dt>Undo</dt>
          <dd>
            {rollback !== undefined && isIrreversible !== true ? (
              <code>{line(undoText(rollback), 300)}</code>
            ) : (
              <b className="bad">cannot be undone</b>
            )}
          </dd>
        </>
      )}
      <dt>Asked</dt>
      <dd>
        <Time at={item.openedAt} className="num" />{' '}
        {age(now - Date.parse(item.openedAt)) !== 'now' && 'ago'}
        {expiresAt !== undefined && (
          <>
            {' · '}
            <span title={dateText(expiresAt)}>expires in {age(Date.parse(expiresAt) - now)}</span>
          </>
        )}
        {request !== undefined && (
          <>
            {' · digest '}
            <code title={request.digest}>{shortDigest(request.digest)}</code>{' '}
            <Copy text={request.digest} label="Copy the digest" />
          </>
        )}
      </dd>
    </dl>
  )
}

/** A short call fits one line; a longer one has a box of its own. Nothing of it is left out. */
function Arguments({ value }: { readonly value: unknown }): ReactNode {
  // Line breaks within texts are escaped in JSON, so those that are left stand between values.
  const text = escapeJson((JSON.stringify(value, null, 1) ?? 'null').replaceAll(/\n */g, ' '))
  if (text.length > 100) return <Json value={value} label="Arguments of the call" />
  return <code>{text}</code>
}

function isOnScreen(element: HTMLElement | null): boolean {
  if (!element) return false
  const { top, bottom } = element.getBoundingClientRect()
  return top < innerHeight - 40 && bottom > 80
}

function undoText(rollback: unknown): string {
  if (!rollback || typeof rollback !== 'object') return String(rollback)
  const { target, payload } = rollback as { target?: unknown; payload?: unknown }
  return `${String(target ?? 'undo')} ${JSON.stringify(payload ?? {})}`
}

function shortDigest(digest: string): string {
  const hash = digest.replace(/^sha256:/, '')
  return `${hash.slice(0, 6)}…${hash.slice(-4)}`
}

interface DialogProps {
  readonly item: WaitingItem
  readonly decide: Deciding
  readonly onClose: () => void
}

function DenyDialog({ item, decide, onClose }: DialogProps): ReactNode {
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

function ChangeDialog({ item, decide, onClose }: DialogProps): ReactNode {
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

function InDoubt({ item, decide }: Omit<DialogProps, 'onClose'>): ReactNode {
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

function AnswerForm({ item, decide }: Omit<DialogProps, 'onClose'>): ReactNode {
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

function valueOf(text: string): unknown {
  try {
    return JSON.parse(text)
  } catch {
    return text
  }
}
