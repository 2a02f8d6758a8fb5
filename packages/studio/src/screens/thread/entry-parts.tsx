import type { ReactNode } from 'react'
import { Square } from '../../icons/lucide.ts'
import { Approval } from '../../parts/approval.tsx'
import { ErrorBox } from '../../parts/basics.tsx'
import { line } from '../../parts/format.ts'
import { Reasoning, Who } from '../../parts/message.tsx'
import { Prose } from '../../parts/prose.tsx'
import { useStore } from '../../state/store.ts'
import { useStudio } from '../../state/studio.ts'
import { isCallOver, type ShownThread } from '../../state/tree.ts'

export function isSideB(agentId: string | undefined, { facts }: ShownThread): boolean {
  return agentId !== undefined && agentId.endsWith('/b') && facts.agents.has(agentId)
}

export function agentName(agentId: string | undefined, { facts, view }: ShownThread): string {
  if (agentId === undefined) return view.agent
  return facts.agents.get(agentId) ?? agentId.replace(/\/[ab]$/, '')
}

/** The question about a call that waits for a person, shown at the place of the call. */
export function Question({
  thread,
  toolCallId,
}: {
  readonly thread: ShownThread
  readonly toolCallId: string
}): ReactNode {
  const { lists } = useStudio()
  const inbox = useStore(lists.inbox)
  const { interrupt, answer } = thread.facts.calls.get(toolCallId) ?? {}
  const item = inbox.items.find(({ interruptId }) => interruptId === interrupt?.id)
  if (interrupt && !answer && thread.isPast)
    return <p className="decision small waits">waited for an answer at this time</p>
  if (!item || answer) return null
  return (
    <Approval
      item={item}
      evidence={thread.facts.evidence}
      verdicts={thread.facts.calls.get(toolCallId)?.verdicts}
      hasEnded={isCallOver(thread, toolCallId)}
      hasKeys={inbox.items.find(({ rootId }) => rootId === item.rootId) === item}
    />
  )
}

/** What the model streams now. */
export function DraftEntry({ thread }: { readonly thread: ShownThread }): ReactNode {
  const { draft } = thread.facts
  const isPending = thread.view.draftDelivery === 'pending'
  if (!draft) return null
  const name = agentName(draft.agentId, thread)
  return (
    <div className={`msg live ${isSideB(draft.agentId, thread) ? 'side-b' : ''}`}>
      <Who name={name} kind="model" detail="now" />
      <div className={`said ${isPending ? 'unverified' : ''}`}>
        {draft.reasoning !== '' && <Reasoning text={draft.reasoning} isOpen={draft.text === ''} />}
        {draft.text !== '' && <Prose text={draft.text} />}
        {isPending && draft.text !== '' && (
          <p className="mark">not verified yet: a gate checks it before it is delivered</p>
        )}
        {draft.calls.map(({ id, toolName, argumentsText }) => (
          <p key={id} className="mono small draft-call">
            <b className="tool-ink">{line(toolName, 60)}</b> {line(argumentsText, 400)}
            <span className="caret" aria-hidden />
          </p>
        ))}
      </div>
    </div>
  )
}

/** How the session ended; nothing if it was completed. */
export function Ending({ thread }: { readonly thread: ShownThread }): ReactNode {
  const { result, failures } = thread.view
  if (!result || result.outcome === 'completed') return null
  if (result.outcome === 'failed' && result.reason === 'fail_safe')
    return (
      <div className="indent">
        <div className="fail-safe" role="status">
          <b>The answer was not delivered.</b>{' '}
          {line((result.message ?? '').replace(/^The result was not delivered: /, ''), 400)}
          <p className="soft small">
            A gate checked it and found that it lacks what the agent’s rules ask for. So what the
            agent said above is unverified.
          </p>
        </div>
      </div>
    )
  if (result.outcome === 'failed') {
    // The latest failure, and all of it: message, code and hint of one and the same error.
    const { message, code, hint } = failures.at(-1) ?? { ...result, code: result.reason }
    const text = line(message ?? 'The session failed.', 600)
    const error = Object.assign(new Error(text), { code, hint })
    return (
      <div className="indent">
        <ErrorBox error={error} />
      </div>
    )
  }
  return (
    <p className="note indent soft small">
      <Square size={11} aria-hidden /> {result.outcome === 'stopped' ? 'Stopped' : 'Ended'}
      {result.message !== undefined && `: ${line(result.message, 200)}`}
    </p>
  )
}

/** How many decisions people have to make in a thread. */
export function peopleWaitedFor({ view }: ShownThread): number {
  return view.waiting.filter((wait) => wait.for === 'person' || wait.for === 'client').length
}
