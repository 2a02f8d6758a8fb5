import { type Tool, type ToolCall, type ToolOutcome } from '../contract/tool.ts'
import { type CallPorts, type SettledOutcome, type LateOutcome } from './call-ports.ts'
import { failed } from './outcome.ts'
import { isAbort } from './is-abort.ts'

/** A call whose tool runs now. */
interface TimedCall extends Pick<CallPorts, 'settlesAfter'> {
  readonly call: ToolCall
  readonly tool: Tool
  /** The signal of the batch. */
  readonly signal: AbortSignal
  readonly stopGraceMs: number | undefined
  readonly timers?: CallTimers | undefined
  /** Runs the tool with its own signal. When `cut` aborts, a generator is stopped at its next value. */
  readonly start: (signal: AbortSignal, cut: AbortSignal) => Promise<ToolOutcome>
}

/** Timers for the time limits of calls: virtual ones where a run is simulated or played back. */
export interface CallTimers {
  set(ms: number, callback: () => void): unknown
  clear(handle: unknown): void
}

const platformTimers: CallTimers = {
  set: (ms, callback) => setTimeout(callback, ms),
  clear: (handle) => clearTimeout(handle as ReturnType<typeof setTimeout>),
}

/** Whether a call that may have run can run again. */
function mayRepeat({ risk, idempotent }: Tool): boolean {
  return risk === 'read_only' || idempotent === true
}

/**
 * Returns what decides whether a call that runs still gets an outcome after an abort. Without ports, a tool that is
 * declared as a write has the grace; a tool that declares nothing is not waited for.
 */
export function graceOf(tool: Tool, ports: CallPorts): CallPorts['settlesAfter'] {
  if (mayRepeat(tool)) return undefined
  if (ports.settlesAfter || tool.risk === undefined) return ports.settlesAfter?.bind(ports)
  return () => `The run was aborted while "${tool.name}" ran.`
}

/** Returns the outcome of a call that an abort has left without one. */
export function abortedOutcome(tool: Tool | undefined, hasStarted: boolean): SettledOutcome {
  if (!tool || !hasStarted)
    return failed('The run was aborted before this call ran. It was not run.')
  const message = `The run was aborted while "${tool.name}" ran.`
  if (mayRepeat(tool)) return failed(`${message} It has no result.`)
  return { type: 'unknown', message: `${message} ${FIND_OUT}` }
}

/** The default of `stopGraceMs`. */
const STOP_GRACE_MS = 5_000

/** The end of a call: its outcome and, if the tool continues without it, what the tool ends with. */
interface Ended {
  readonly outcome: ToolOutcome
  readonly left?: Promise<LateOutcome | undefined>
}

/**
 * Runs the tool with its time limit. A call that may run again fails at the limit. Any other call has a grace to end by
 * itself, because a result is better than a write whose effect is unknown.
 */
export async function runInTime(timed: TimedCall): Promise<Ended> {
  const { call, tool, settlesAfter, start, stopGraceMs = STOP_GRACE_MS, timers } = timed
  const { timeoutMs = Infinity } = tool
  const hasLimit = timeoutMs < 2 ** 31 // no timer is longer
  const outer = timed.signal
  const repeats = mayRepeat(tool)
  if (!hasLimit && !settlesAfter) {
    const outcome = await start(outer, outer)
    const isDropped = outer.aborted && !repeats
    return { outcome, left: isDropped ? Promise.resolve(lateOutcome(outcome, outer)) : undefined }
  }
  const limit = new AbortController()
  const end = new AbortController()
  const signal = AbortSignal.any([outer, limit.signal])
  const endOrOuter = settlesAfter ? end.signal : AbortSignal.any([outer, end.signal])
  const startedAt = performance.now()
  const running = start(signal, repeats ? signal : endOrOuter)
  const left = repeats ? undefined : running.then((outcome) => lateOutcome(outcome, signal))
  const message = `The tool "${call.toolName}" took longer than ${timeoutMs} ms and was stopped.`
  const limitMs = hasLimit ? timeoutMs : undefined
  const first = await inTime(running, limitMs, { signal: settlesAfter && outer, timers })
  if (first) {
    const isDropped = outer.aborted && settlesAfter?.(outer.reason) === undefined
    if (isDropped) return { outcome: first, left } // the batch has dropped the call
    // A tool that blocks the event loop returns before the timer can fire, so the time is measured here as well. The
    // result of a write counts also after its limit.
    const ms = Math.round(performance.now() - startedAt)
    if (settlesAfter || first.type !== 'done' || ms <= timeoutMs) return { outcome: first }
    const late = `The tool "${call.toolName}" took ${ms} ms, longer than its ${timeoutMs} ms. The event loop was blocked, so the tool could not be stopped and has run to its end. Calling it again would do its work a second time.`
    return { outcome: failed(late) }
  }
  const stopped = outer.aborted ? settlesAfter?.(outer.reason) : undefined
  if (outer.aborted && stopped === undefined) {
    end.abort(outer.reason)
    return { outcome: await running, left } // the batch has dropped the call
  }
  if (!outer.aborted) limit.abort(new DOMException(message, 'TimeoutError'))
  if (repeats) return { outcome: failed(message) }

  const graceSignal = settlesAfter ? undefined : outer
  const late = await inTime(running, stopGraceMs, { signal: graceSignal, timers })
  if (!late) {
    end.abort(signal.reason)
    const what = stopped === undefined ? `took longer than ${timeoutMs} ms` : 'was asked to stop'
    const unknown = `The tool "${call.toolName}" ${what} and did not stop. ${FIND_OUT}`
    return { outcome: { type: 'unknown', message: unknown }, left }
  }
  if (late.type !== 'error' || !isAbort(late.cause, signal)) return { outcome: late }
  return { outcome: obeyed(tool, stopped ?? message, late.cause) }
}

/**
 * Returns the outcome of a tool that has thrown because of its signal. If it is declared as a write, it is unknown how
 * much of its work it had done: a request that was sent before it was aborted may have arrived.
 */
function obeyed({ risk }: Tool, message: string, cause: unknown): ToolOutcome {
  if (risk === undefined) return { ...failed(message, cause), code: TOOL_STOPPED }
  return { type: 'unknown', message: `${message} ${FIND_OUT}`, hasEnded: true }
}

/** The code of the outcome of a call whose tool has thrown because of its signal. */
export const TOOL_STOPPED = 'TOOL_STOPPED'

function lateOutcome(outcome: ToolOutcome, signal: AbortSignal): LateOutcome | undefined {
  if (outcome.type === 'done') return outcome
  const isEnd = outcome.type === 'error' && !isAbort(outcome.cause, signal)
  return isEnd ? outcome : undefined
}

/** What the model reads about a call that may or may not have taken effect. */
export const FIND_OUT = 'Whether it took effect is unknown; find out before you call it again.'

/** Returns the outcome if it comes within `ms` and before the signal aborts; otherwise undefined. */
async function inTime(
  running: Promise<ToolOutcome>,
  ms: number | undefined,
  {
    signal,
    timers = platformTimers,
  }: { readonly signal: AbortSignal | undefined; readonly timers: CallTimers | undefined },
): Promise<ToolOutcome | undefined> {
  let timer: unknown
  let stop: (() => void) | undefined
  const late = new Promise<undefined>((resolve) => {
    stop = () => resolve(undefined)
    if (signal?.aborted) return stop()
    if (ms !== undefined) timer = timers.set(ms, stop)
    signal?.addEventListener('abort', stop, { once: true })
  })
  try {
    return await Promise.race([running, late])
  } finally {
    if (timer !== undefined) timers.clear(timer)
    if (stop) signal?.removeEventListener('abort', stop)
  }
}
