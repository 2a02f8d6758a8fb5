import type { SessionResult } from '@skein/runtime'
import type { Client } from '@skein/runtime/client'
import type { Output } from '../output.ts'
import type { RunView } from './run-view.ts'
import { Tally } from './tally.ts'

/** How a run was left. */
export interface Followed {
  readonly result: SessionResult
  readonly tally: Tally
  /** Why it was parked, if it was from here. */
  readonly parkedBy?: 'interrupt' | 'timeout'
  /** Position in the stream, to follow the next turn from. */
  readonly after: string
}

export interface FollowOptions {
  readonly client: Client
  readonly threadId: string
  readonly view: RunView
  readonly output: Output
  /** Position to begin after. Default: the first event. */
  readonly after?: string
  /** Events of children up to this time are old news. */
  readonly sinceMs?: number
  readonly timeoutMs?: number | undefined
}

const TICK_MS = 200
const PARK_MS = 250

/**
 * Shows a thread until it is at rest or needs a person. The first interrupt, or the timeout, parks it; the
 * second interrupt ends this process. Undefined when nobody reads any more.
 */
export async function follow(options: FollowOptions): Promise<Followed | undefined> {
  const { client, threadId, output, view } = options
  const tally = new Tally()
  const ending = new AbortController()
  let parkedBy: Followed['parkedBy']
  let parking: NodeJS.Timeout | undefined
  const park = (by: 'interrupt' | 'timeout'): void => {
    if (by === 'interrupt' && parkedBy === 'interrupt') process.exit(130)
    parkedBy ??= by
    if (by === 'interrupt') output.say('Parking the run; once more to leave at once.')
    const ask = (): void =>
      void parkTree(client, threadId).catch((error: unknown) => ending.abort(error))
    ask()
    // A run that has not begun yet cannot be stopped; it is asked again once it has.
    parking ??= setInterval(ask, PARK_MS)
  }
  const onInterrupt = (): void => park('interrupt')
  const leave = (): void => ending.abort()
  process.on('SIGINT', onInterrupt).on('SIGTERM', onInterrupt)
  output.closed.addEventListener('abort', leave)
  const timeout =
    options.timeoutMs === undefined
      ? undefined
      : setTimeout(() => park('timeout'), options.timeoutMs)
  const ticker = setInterval(() => view.tick(tally), TICK_MS)
  try {
    const { result, after } = await readUntilSettled(options, tally, ending)
    return { result, tally, after, ...(parkedBy && { parkedBy }) }
  } catch (error) {
    if (output.closed.aborted) return undefined
    throw error
  } finally {
    process.off('SIGINT', onInterrupt).off('SIGTERM', onInterrupt)
    output.closed.removeEventListener('abort', leave)
    clearTimeout(timeout)
    clearInterval(ticker)
    clearInterval(parking)
  }
}

/** Reads on until everything that the result speaks of was shown. */
async function readUntilSettled(
  { client, threadId, view, after = '0', sinceMs = 0 }: FollowOptions,
  tally: Tally,
  ending: AbortController,
): Promise<{ readonly result: SessionResult; readonly after: string }> {
  const reading = new AbortController()
  const { signal } = reading
  let seen = Math.trunc(Number.parseFloat(after))
  let position = after
  let last: number | undefined
  const settled = client.threads.settled(threadId, { signal: ending.signal }).then(
    (result) => {
      last = result.thread.seq
      if (seen >= last) reading.abort()
      return result
    },
    (error: unknown) => {
      reading.abort()
      throw ending.signal.aborted ? ending.signal.reason : error
    },
  )
  settled.catch(() => undefined) // awaited below; the stream may end first
  for await (const event of client.streamTree(threadId, { after, signal })) {
    position = event.position
    if (event.threadId === threadId) seen = Math.trunc(Number(event.id))
    if (event.path.length === 1 || Date.parse(event.event.at) > sinceMs) {
      tally.add(event)
      view.show(event, tally)
    }
    if (last !== undefined && seen >= last) break
  }
  return { result: await settled, after: position }
}

/** The parent first, so that no result of a child wakes it again. */
async function parkTree(client: Client, threadId: string): Promise<void> {
  await client.threads.stop(threadId)
  const { rootId } = await client.threads.get(threadId)
  if (rootId !== threadId) return
  const running = await client.threads.list({ rootId, lifecycle: 'running', limit: 1000 })
  for (const { id } of running) if (id !== threadId) await client.threads.stop(id)
}
