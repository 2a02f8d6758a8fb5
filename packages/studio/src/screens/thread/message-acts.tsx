import type { ReactNode } from 'react'
import type { ViewMessage } from '@skein/runtime/view'
import { GitFork, PanelRight } from '../../icons/lucide.ts'
import { useMay } from '../../state/studio.ts'
import { type Branches, BranchPicker } from './branches.tsx'

/** The actions on a message: fork the thread there, and go to the branches that part there. */
export function MessageActs({
  message,
  branches,
  isPast,
  onFork,
  onDetails,
}: {
  readonly message: ViewMessage
  readonly branches: Branches | undefined
  readonly isPast: boolean
  readonly onFork: (message: ViewMessage) => void
  readonly onDetails: (id: string) => void
}): ReactNode {
  const mayWrite = useMay('threads:write')
  return (
    <>
      {branches && <BranchPicker branches={branches} />}
      <div className="msg-acts">
        <button
          type="button"
          className="btn quiet tiny"
          title={
            message.from === 'user'
              ? 'When it was read, and its events'
              : 'The request to the model, its answer, tokens and events'
          }
          onClick={() => onDetails(message.id)}
        >
          <PanelRight size={13} aria-hidden /> Details
        </button>
        {mayWrite && (
          <button
            type="button"
            className="btn quiet tiny"
            title={isPast ? 'Fork the thread from this message, as it was' : 'Fork the thread here'}
            onClick={() => onFork(message)}
          >
            <GitFork size={13} aria-hidden /> {message.from === 'user' ? 'Edit and fork' : 'Fork'}
          </button>
        )}
      </div>
    </>
  )
}
