import type { ReactNode } from 'react'
import { line } from '../../parts/format.ts'
import { Reasoning, Who } from '../../parts/message.tsx'
import { Prose } from '../../parts/prose.tsx'
import type { ShownThread } from '../../state/tree.ts'
import { agentName, isSideB } from './agent-name.ts'

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
