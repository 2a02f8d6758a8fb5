import { Check, Pencil, X } from 'lucide-react'
import { useEffect, useId, useRef, useState, type ReactNode } from 'react'
import type { WaitingItem } from '@skein/runtime'
import type { EvidenceFact, GateVerdict } from '../state/facts.ts'
import { useKeys } from '../state/keys.ts'
import { useMay, useStudio } from '../state/studio.ts'
import { ErrorBox } from './basics.tsx'
import { Checklist, EvidenceList } from './evidence.tsx'
import { GrantMenu } from './grants.tsx'
import { line } from './format.ts'
import {
  DenyDialog,
  ChangeDialog,
  InDoubtForm,
  AnswerForm,
  VariablesForm,
  idOf,
  digestOf,
} from './answer-forms.tsx'
import { AskFacts, isOnScreen, sentence } from './ask-facts.tsx'

/** What a person can do about a waiting call. */
type Decision = 'approve' | 'change' | 'deny'

/** A card for a call that waits for a person: what would happen, the evidence for it, and the buttons. */
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
  const mayDecide = useMay(item.kind === 'variables' ? 'env:write' : 'approvals:write')
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
    // Only approvals can be decided with a key. All other questions have a form, so `e` moves the focus there.
    if (item.kind !== 'approval') {
      if (decision === 'change')
        card.current?.querySelector<HTMLElement>('input, textarea, .btns button')?.focus()
      return
    }
    // A call that is not visible cannot be decided with a key: the first press only scrolls to it.
    if (isOnScreen(card.current)) choose(decision)
    else card.current?.scrollIntoView({ block: 'center' })
  }
  useKeys(
    hasKeys
      ? [
          { keys: 'a', does: 'Approve', run: () => byKey('approve') },
          { keys: 'e', does: 'Approve with changes, or fill in', run: () => byKey('change') },
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
      {item.kind === 'variables' && mayDecide && <VariablesForm decide={decide} item={item} />}
      {item.kind === 'in_doubt' && mayDecide && <InDoubtForm decide={decide} item={item} />}
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

export interface Deciding {
  readonly isBusy: boolean
  readonly error: unknown
  /** What became of it, in words. */
  readonly outcome: string | undefined
  /**
   * Sends a decision. `notice` is the text shown at the edge of the page; by default `word` and the
   * subject of the call.
   */
  run(work: (inbox: Inbox) => Promise<void>, word: string, notice?: string): Promise<boolean>
}

/** Sends a decision once. If somebody else has decided first, shows that decision instead. */
function useDecision(item: WaitingItem): Deciding {
  const { client, notify, lists } = useStudio()
  const [isBusy, setBusy] = useState(false)
  const [error, setError] = useState<unknown>()
  const [outcome, setOutcome] = useState<string>()
  return {
    isBusy,
    error,
    outcome,
    async run(work, word, notice = `${word}: ${sentence(item)}`) {
      setBusy(true)
      setError(undefined)
      try {
        await work(client.inbox)
        notify(notice)
        setOutcome(`${word}.`)
        lists.refresh()
        return true
      } catch (failure) {
        // If somebody else has decided, or the call has ended, that is shown instead of the error.
        const isOwn = (failure as { readonly code?: unknown }).code === 'INPUT_INVALID'
        const before = isOwn ? undefined : await firstDecision(client, item).catch(() => undefined)
        if (before === undefined) setError(failure)
        else setOutcome(before)
        return before !== undefined
      } finally {
        setBusy(false)
      }
    },
  }
}

/** Asks the server who has decided about the call, and how; undefined if nobody has. */
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
  const who = line(decision.by ?? 'Somebody', 60)
  if (decision.type === 'provided')
    return `${who} was first and gave the values. Yours were not stored.`
  const word = { approve: 'approved', deny: 'denied' }[decision.type as string] ?? 'answered'
  return `${who} was first and ${word} it. Nothing was changed.`
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
