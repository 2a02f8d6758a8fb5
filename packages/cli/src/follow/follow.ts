import type { SessionResult } from '@skein/runtime'
import type { Client, TreeEvent } from '@skein/server/client'
import { ExitCode } from '../terminal/command.ts'
import type { Output } from '../terminal/output.ts'
import { afterMs } from './long-timer.ts'
import type { RunView } from './show-run.ts'

/** The result of following a run. */
export interface Followed {
  readonly result: SessionResult
  readonly tally: Tally
  /** Set if this process stopped the run: because of Ctrl-C or of the timeout. */
  readonly parkedBy?: 'interrupt' | 'timeout'
  /** The position in the stream of events after which the next turn begins. */
  readonly after: string
}

/** The thread to follow, and how it is shown. */
export interface FollowOptions {
  readonly client: Client
  readonly threadId: string
  readonly view: RunView
  readonly output: Output
  /** The position in the stream after which reading begins. Default: the beginning of the stream. */
  readonly after?: string
  /** Events of subagents before this time belong to an earlier run and are not shown. */
  readonly sinceMs?: number
  readonly timeoutMs?: number
}

const TICK_MS = 200
const PARK_MS = 250

/**
 * Shows the events of a thread until it is at rest or waits for a person. The first Ctrl-C, or the
 * timeout, stops the thread so that it can be resumed; the second Ctrl-C ends this process. Returns
 * undefined if the program that reads the output is gone.
 */
export async function follow(options: FollowOptions): Promise<Followed | undefined> {
  const { client, threadId, output, view, timeoutMs } = options
  const tally = new Tally()
  const ending = new AbortController()
  let parkedBy: Followed['parkedBy']
  let parking: NodeJS.Timeout | undefined
  const park = (by: 'interrupt' | 'timeout'): void => {
    if (by === 'interrupt' && parkedBy === 'interrupt') process.exit(ExitCode.Interrupted)
    parkedBy ??= by
    if (by === 'interrupt')
      output.say(
        'Stopping the run so that it can be resumed; press Ctrl-C again to leave immediately.',
      )
    const ask = (): void =>
      void parkTree(client, threadId).catch((error: unknown) => ending.abort(error))
    ask()
    // A run that has not begun yet cannot be stopped, so the stop is sent again until the run is at rest.
    parking ??= setInterval(ask, PARK_MS)
  }
  const onInterrupt = (): void => park('interrupt')
  const onClosed = (): void => ending.abort()
  process.on('SIGINT', onInterrupt).on('SIGTERM', onInterrupt)
  output.closed.addEventListener('abort', onClosed)
  const cancel = timeoutMs === undefined ? undefined : afterMs(timeoutMs, () => park('timeout'))
  const ticker = setInterval(() => view.tick(tally), TICK_MS)
  try {
    const { result, after } = await readUntilSettled(options, tally, ending)
    return { result, tally, after, parkedBy }
  } catch (error) {
    if (output.closed.aborted) return undefined
    throw error
  } finally {
    process.off('SIGINT', onInterrupt).off('SIGTERM', onInterrupt)
    output.closed.removeEventListener('abort', onClosed)
    cancel?.()
    clearInterval(ticker)
    clearInterval(parking)
  }
}

/**
 * Reads the stream of events while waiting for the result. The result may arrive before the last
 * events, so reading ends when the last event of the result (`thread.seq`) was shown.
 */
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
  settled.catch(() => undefined) // awaited below; without this, an early rejection would be unhandled
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

/**
 * Stops a thread, then its subagents. The thread comes first, because the result of a subagent would
 * otherwise wake the thread again.
 */
async function parkTree(client: Client, threadId: string): Promise<void> {
  await client.threads.stop(threadId)
  const { rootId } = await client.threads.get(threadId)
  if (rootId !== threadId) return
  for (const lifecycle of ['queued', 'running', 'stopping'] as const)
    for (const { id } of await client.threads.list({ rootId, lifecycle, limit: 1000 }))
      if (id !== threadId) await client.threads.stop(id)
}

/** Counts a run from its events: tokens and cost with subagents, turns without them. */
export class Tally {
  tokens = 0
  readonly startedAt: number = performance.now()
  readonly #turns = new Set<string>()
  /** Null if the price of any request is unknown, because the sum would then be too low. */
  costUsd: number | null = 0
  /** The model of the thread's own last request, and the tokens of that request. */
  model: { readonly name: string; readonly contextTokens: number } | undefined

  add({ path, event }: TreeEvent): void {
    if (path.length === 1 && event.type === 'model_requested')
      this.model = { name: `${event.provider}/${event.model}`, contextTokens: 0 }
    const isWork = event.type === 'step_start' || event.type === 'tool_execution_start'
    if (isWork && path.length === 1) this.#turns.add(event.turnId)
    if (event.type !== 'model_answered' || event.error) return
    const { usage = {}, costUsd } = event
    const contextTokens = Number(usage['input_tokens'] ?? 0)
    if (path.length === 1 && this.model) this.model = { ...this.model, contextTokens }
    this.tokens += Number(usage['input_tokens'] ?? 0) + Number(usage['output_tokens'] ?? 0)
    this.costUsd = this.costUsd === null || costUsd === undefined ? null : this.costUsd + costUsd
  }

  /**
   * The number of turns of the thread itself, without subagents. A turn that was stopped and continued counts
   * once.
   */
  get turns(): number {
    return this.#turns.size
  }

  get elapsedMs(): number {
    return performance.now() - this.startedAt
  }
}
