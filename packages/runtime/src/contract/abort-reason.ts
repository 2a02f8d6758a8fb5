import { StoppingError } from './error.ts'

/**
 * Whether the work on a thread was aborted by the stop button or by the thread's termination. That work then
 * closes the session itself.
 */
export function isStop(reason: unknown): boolean {
  return reason === 'stop' || reason === 'terminate'
}

/** Why the calls of a turn are aborted that a new message cuts. */
export const CUT = 'cut'

/** Whether the work on a thread was aborted because the process stops. Another process continues the thread. */
export function isShutdown(reason: unknown): reason is StoppingError {
  return reason instanceof StoppingError
}
