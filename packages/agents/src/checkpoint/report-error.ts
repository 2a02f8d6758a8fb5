import { messageOf } from '../agent-error.ts'

/** Told of what went wrong with the checkpoints of a session. The run goes on (UAP §12.4.7). */
export type CheckpointErrorHandler = (error: unknown, sessionId: string) => void

/** The default: somebody has to see it, and nobody gave a better place. */
export function logCheckpointError(error: unknown, sessionId: string): void {
  // oxlint-disable-next-line no-console -- UAP §12.4.7: failed saves should be logged
  console.error(`Checkpoint of session ${JSON.stringify(sessionId)}: ${messageOf(error)}`)
}

/** A handler that throws must not do what the failed save was kept from doing. */
export function reportError(
  handler: CheckpointErrorHandler,
  error: unknown,
  sessionId: string,
): void {
  try {
    handler(error, sessionId)
  } catch (second) {
    logCheckpointError(second, sessionId)
  }
}
