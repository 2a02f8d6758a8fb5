/** Why a drain is aborted. The reason of the drain's signal. */
export type Interruption = 'stop' | 'terminate' | 'shutdown'

/** The stop button, or the end of the thread: the drain closes the session itself. */
export function isStop(reason: unknown): boolean {
  return reason === 'stop' || reason === 'terminate'
}
