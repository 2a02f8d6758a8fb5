import type { ReactNode } from 'react'
import { Square } from '../../icons/lucide.ts'
import { ErrorBox } from '../../parts/error-box.tsx'
import { line } from '../../parts/format.ts'
import type { ShownThread } from '../../state/tree.ts'

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
