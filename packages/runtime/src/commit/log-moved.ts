import type { DrainContext } from '../context/drain-context.ts'
import { isStoreError } from '../store/store-error.ts'

/*
 * A commit that expects the log as its writer has read it is refused when others have appended to the log meanwhile
 * (`LOG_MOVED`). What was decided from the old log has then to be decided again from the new one.
 */

/** Does some work that ends with such a commit. Returns undefined if the log has moved. */
export async function resultUnlessMoved<T>(
  work: () => Promise<T>,
): Promise<{ readonly result: T } | undefined> {
  try {
    return { result: await work() }
  } catch (error) {
    if (!isStoreError(error, 'LOG_MOVED')) throw error
    return undefined
  }
}

/**
 * Does some work that ends with such a commit. Returns false if the log has moved; the state then has the new events,
 * and the caller decides again.
 */
export async function unlessLogMoved(
  thread: Pick<DrainContext, 'catchUp'>,
  work: () => Promise<unknown>,
): Promise<boolean> {
  const isDone = (await resultUnlessMoved(work)) !== undefined
  if (!isDone) await thread.catchUp()
  return isDone
}

/**
 * Does some work that decides and ends with such a commit, again and again until the log has not moved. Work that does
 * not read the log anew by itself passes its `thread`, which is brought up to date between the tries.
 */
export async function retryWhenLogMoved<T>(
  work: () => Promise<T>,
  {
    thread,
    maxTries = Infinity,
  }: { readonly thread?: Pick<DrainContext, 'catchUp'>; readonly maxTries?: number } = {},
): Promise<T> {
  for (let tries = 1; tries < maxTries; tries++) {
    const end = await resultUnlessMoved(work)
    if (end) return end.result
    await thread?.catchUp()
  }
  return work()
}
