import { linkAbort } from '@skein/base'
import type { DrainContext } from '../context/drain-context.ts'
import { CUT } from '../contract/abort-reason.ts'

/**
 * Returns a signal that aborts with the work on the thread, and when a message cuts the running turn. Calls that have not
 * started do not run then; those that run are stopped as by a person's stop.
 */
export function cutSignal({ environment, head, signal }: DrainContext): {
  readonly signal: AbortSignal
  end(): void
} {
  const controller = new AbortController()
  const unlink = linkAbort([signal], controller)
  const forget = environment.onEdit(head.id, ({ type }) => {
    if (type === 'message_queued') controller.abort(CUT)
  })
  const end = (): void => {
    unlink()
    forget()
  }
  return { signal: controller.signal, end }
}

/** Reads the message that has cut the running turn, unless the work on the thread was aborted. */
export async function readCut(context: DrainContext): Promise<void> {
  if (context.signal.aborted) return
  await context.commit('cut', {}) // writes what is held back for the next commit; nothing is read before
  context.dropGovernor() // it waits for the results of the reads that were dropped
  await context.catchUp()
}
