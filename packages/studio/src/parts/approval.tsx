import { type ReactNode, useCallback, useEffect, useId, useRef, useState } from 'react'
import type { WaitingItem } from '@skein/runtime'
import { CheckIcon as Check, Pencil, X } from '../icons/lucide.ts'
import type { EvidenceFact, GateVerdict } from '../state/facts.ts'
import { useKeys } from '../state/keys.ts'
import { useMay, useStudio } from '../state/studio.ts'
import { useResource } from '../state/resource.ts'
import { ErrorBox } from './error-box.tsx'
import { Confirmation, DecisionButton } from './decision-button.tsx'
import { Checklist } from './checklist.tsx'
import { type EvidenceCall, EvidenceList } from './evidence.tsx'
import { GrantMenu } from './grant-menu.tsx'
import { line } from './format.ts'
import {
  AnswerForm,
  callOf,
  ChangeDialog,
  DenyDialog,
  digestOf,
  idOf,
  InDoubtForm,
  VariablesForm,
} from './answer-forms.tsx'
import { AskFacts } from './ask-facts.tsx'
import { effectText, sentence } from './ask-text.ts'

/** What a person can do about a waiting call. */
type Decision = 'approve' | 'change' | 'deny'

/** A decision that has to be confirmed, because the call cannot be undone. */
interface Unconfirmed {
  readonly effect: string
  readonly verb: string
  readonly send: () => void
}

/** A card for a call that waits for a person: what would happen, the evidence for it, and the buttons. */
export function Approval({
  item,
  evidence = [],
  verdicts = [],
  results,
  hasKeys = false,
  isOver = false,
  hasEnded = false,
  children,
}: {
  readonly item: WaitingItem
  readonly evidence?: readonly EvidenceFact[]
  readonly verdicts?: readonly GateVerdict[]
  /** What the calls that the evidence is based on have returned, where that is not on the screen anyway. */
  readonly results?: ReadonlyMap<string, EvidenceCall>
  /** Whether the keys `a`, `e` and `d` move the focus to the buttons of this call. Only one call on a page has them. */
  readonly hasKeys?: boolean
  /** Whether the call no longer waits, although nothing was decided here. */
  readonly isOver?: boolean
  /** Whether the call has ended with an unknown outcome; then the question is only what really happened. */
  readonly hasEnded?: boolean
  /** Where the question comes from. */
  readonly children?: ReactNode
}): ReactNode {
  const { client, lists } = useStudio()
  const [dialog, setDialog] = useState<'change' | 'deny'>()
  const [unconfirmed, setUnconfirmed] = useState<Unconfirmed>()
  const decide = useDecision(item)
  const title = useId()
  const mayDecide = useMay(item.kind === 'variables' ? 'env:write' : 'approvals:write')
  const card = useRef<HTMLElement>(null)
  /** Sends the approval, or asks first if the call cannot be undone. */
  const approve = (grant?: { readonly forMs: number; readonly words: string }): void => {
    const send = (): void => {
      const approval = { ...idOf(item), digest: digestOf(item), grantForMs: grant?.forMs }
      const word = grant === undefined ? 'Approved' : `Approved ${grant.words}`
      void decide.run((inbox) => inbox.approve(approval), word)
    }
    if (item.isIrreversible !== true) return send()
    const name = line(item.toolName, 60)
    const further =
      grant === undefined ? '' : ` And ${grant.words}, every further ${name} in this thread.`
    setUnconfirmed({ effect: `${effectText(item)}${further}`, verb: `Yes, run ${name}`, send })
  }
  const close = useCallback(() => setUnconfirmed(undefined), [])
  useEffect(close, [close, callOf(item)])
  const focusOn = (decision: Decision): void => {
    // Only approvals have these buttons. All other questions have a form, so `e` moves the focus there.
    const target =
      item.kind === 'approval'
        ? card.current?.querySelector<HTMLElement>(`[data-choice=${decision}]`)
        : decision === 'change'
          ? card.current?.querySelector<HTMLElement>('input, textarea, .btns button')
          : undefined
    target?.scrollIntoView({ block: 'nearest' })
    target?.focus({ preventScroll: true })
  }
  useKeys(
    hasKeys
      ? [
          { keys: 'a', does: 'Move to Approve', run: () => focusOn('approve') },
          {
            keys: 'e',
            does: 'Move to Approve with changes, or to the form',
            run: () => focusOn('change'),
          },
          { keys: 'd', does: 'Move to Deny', run: () => focusOn('deny') },
        ]
      : [],
  )
  // A dialog in which the person writes stays until it is closed.
  const isShownOver = isOver && dialog === undefined && !decide.isBusy
  const before = useResource(isShownOver ? `decision ${callOf(item)}` : undefined, () =>
    firstDecision(client, item),
  )
  const outcome = decide.outcome ?? before.value
  if (outcome !== undefined)
    return (
      <Decided item={item} outcome={outcome} done={lists.refresh}>
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
          <EvidenceList evidence={evidence} results={results} />
        </details>
      )}
      {decide.error !== undefined && <ErrorBox error={decide.error} />}
      {item.kind === 'approval' && (
        <Choices
          item={item}
          isDisabled={decide.isBusy || !mayDecide || unconfirmed !== undefined}
          hasKeys={hasKeys}
          approve={approve}
          open={setDialog}
        />
      )}
      {unconfirmed && (
        <Confirmation
          call={callOf(item)}
          effect={unconfirmed.effect}
          verb={unconfirmed.verb}
          isBusy={decide.isBusy}
          onConfirm={unconfirmed.send}
          onCancel={close}
        />
      )}
      {!mayDecide && <p className="soft">You can see this, but you may not decide it.</p>}
      {item.kind === 'variables' && mayDecide && <VariablesForm decide={decide} item={item} />}
      {item.kind === 'in_doubt' && mayDecide && (
        <InDoubtForm decide={decide} item={item} hasEnded={hasEnded} />
      )}
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
  isDisabled,
  hasKeys,
  approve,
  open,
}: {
  readonly item: WaitingItem
  readonly isDisabled: boolean
  readonly hasKeys: boolean
  readonly approve: (grant?: { readonly forMs: number; readonly words: string }) => void
  readonly open: (dialog: 'change' | 'deny') => void
}): ReactNode {
  return (
    <>
      <div className="btns">
        <DecisionButton
          call={callOf(item)}
          name="approve"
          className="btn go"
          isDisabled={isDisabled}
          onDecide={() => approve()}
        >
          <Check size={15} aria-hidden /> Approve {hasKeys && <kbd>a</kbd>}
        </DecisionButton>
        {item.effectId === undefined && (
          <button
            type="button"
            className="btn"
            data-choice="change"
            disabled={isDisabled}
            onClick={() => open('change')}
          >
            <Pencil size={14} aria-hidden /> Approve with changes {hasKeys && <kbd>e</kbd>}
          </button>
        )}
        {item.effectId === undefined && item.request?.quorum === 1 && (
          <GrantMenu item={item} isDisabled={isDisabled} approve={approve} />
        )}
        <button
          type="button"
          className="btn no"
          data-choice="deny"
          disabled={isDisabled}
          onClick={() => open('deny')}
        >
          <X size={15} aria-hidden /> Deny… {hasKeys && <kbd>d</kbd>}
        </button>
      </div>
      {hasKeys && (
        <p className="enter-hint small soft">
          <kbd>a</kbd> moves to Approve. Enter then approves, once the button has had the focus for
          a moment.
        </p>
      )}
    </>
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

/** Sends a decision once. If someone else has decided first, shows that decision instead. */
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
        // If someone else has decided, or the call has ended, that is shown instead of the error.
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

/** Asks the server who has decided about the call, and how; undefined if no one has. */
async function firstDecision(
  client: ReturnType<typeof useStudio>['client'],
  item: WaitingItem,
): Promise<string | undefined> {
  const { decision, status } = await client.inbox.get(idOf(item))
  if (status === 'waiting') return undefined
  if (!decision)
    return status === 'over'
      ? 'It no longer waits: the call has ended, the thread was stopped, or the time was over.'
      : 'Someone else was first.'
  const who = line(decision.by ?? 'Someone else', 60)
  if (decision.type === 'provided') return `${who} was first. Your values were not stored.`
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
