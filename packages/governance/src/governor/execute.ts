import { argumentParserOf, parsedByMember } from '@skein/base'
import type { GovernedContext, ToolCore } from '../contract/governed.ts'
import { reason, type Reason, refusal, thrownText } from '../contract/reason.ts'
import { withTimeout } from './options.ts'
import type { GovernedRequest } from './request.ts'
import type { AdmittedCall } from './admitted-call.ts'
import type { GovernedOutcome } from './settle.ts'
import { emitChunk } from './stream-chunks.ts'

/** Error codes with which a tool reports that it failed before it changed anything. */
const CLEAN_FAILURES: ReadonlySet<unknown> = new Set(['NO_EFFECT', 'TOOL_ARGUMENTS_INVALID'])

/**
 * Runs the tool of a call that was allowed, within its time limit. Returns its result, or the reasons why it
 * failed and whether it had its effect.
 */
export async function execute(
  request: GovernedRequest,
  call: AdmittedCall,
): Promise<GovernedOutcome> {
  const core = request.getTool(call.tool)
  // The run may have been stopped while the call's journal entry was written; then the tool is not started.
  if (request.stopped) return { type: 'error', reasons: [request.stopped], effect: 'absent' }
  try {
    return { type: 'result', value: await runTool(request, call, core) }
  } catch (error) {
    const why =
      error instanceof Stopped ? error.why : reason('TOOL_ERROR', call.tool, thrownText(error))
    if (call.risk === 'read_only') return { type: 'error', reasons: [why], effect: 'absent' }
    const isClean = CLEAN_FAILURES.has((error as { readonly code?: unknown } | null)?.code)
    const effect = isClean ? 'absent' : await probe(request, call, core)
    const reasons = effect === 'in_doubt' ? [why, reason('TOOL_IN_DOUBT', call.tool)] : [why]
    return { type: 'error', reasons, effect }
  }
}

class Stopped extends Error {
  readonly why: Reason

  constructor(why: Reason) {
    super(why.code)
    this.why = why
  }
}

/**
 * Calls the tool and waits for it. When the run is stopped or the tool's time is over, its signal is aborted
 * and it has `graceMs` more to end by itself, because a known outcome is better than an unknown effect.
 */
function runTool(
  request: GovernedRequest,
  call: AdmittedCall,
  { tool, governance: { timeoutMs } }: ToolCore,
): unknown {
  const { core, running, controller } = request
  // A call without a timeout uses the run's signal directly and needs no controller of its own.
  const own = timeoutMs === undefined ? undefined : new AbortController()
  const signal = own ? AbortSignal.any([controller.signal, own.signal]) : controller.signal
  // A tool's declared context type is that of its own framework; at run time the tool gets our context, which
  // has the members that UPP requires.
  const run = tool.run as (args: unknown, context: unknown) => unknown
  const parsedBy = parsedByMember(argumentParserOf(tool))
  const value = run(call.args, { ...toolContext(request, call, signal), ...parsedBy })
  if (!isThenable(value)) return value
  return new Promise((resolve, reject) => {
    let cancelGrace: (() => void) | undefined
    const stop = (why: Reason): void => {
      cancelGrace ??= core.timer(core.limits.graceMs, () => reject(new Stopped(why)))
    }
    const cancelTimer =
      timeoutMs === undefined
        ? undefined
        : core.timer(timeoutMs, () => {
            const why = reason('TOOL_TIMEOUT', call.tool, `${timeoutMs} ms`)
            own?.abort(why)
            stop(why)
          })
    const entry = running.get(call.call)
    if (entry) entry.stop = stop
    const cancel = (): void => {
      cancelTimer?.()
      cancelGrace?.()
    }
    value.then(
      (result) => {
        cancel()
        resolve(result)
      },
      (error: unknown) => {
        cancel()
        reject(error as Error)
      },
    )
  })
}

function isThenable(value: unknown): value is PromiseLike<unknown> {
  return typeof (value as { then?: unknown } | null | undefined)?.then === 'function'
}

/** Asks the tool's probe whether the effect happened. Without a clear answer the call stays in doubt. */
export async function probe(
  request: GovernedRequest,
  call: AdmittedCall,
  { governance: { probe: look } }: ToolCore,
): Promise<'applied' | 'absent' | 'in_doubt'> {
  if (!look) return 'in_doubt'
  const { timer, limits } = request.core
  try {
    const finding = await withTimeout(
      async (signal) => look(call.args, toolContext(request, call, signal)),
      limits.undoTimeoutMs,
      timer,
    )
    if (finding === true || finding === 'applied') return 'applied'
    return finding === false || finding === 'absent' ? 'absent' : 'in_doubt'
  } catch {
    // After a probe that throws or times out, it is still unknown whether the effect happened.
    return 'in_doubt'
  }
}

/** Builds the context that a tool's functions (`run`, `probe`, `rollback`) and functions that undo writes get. */
export function toolContext(
  request: GovernedRequest,
  call: AdmittedCall,
  signal: AbortSignal = request.controller.signal,
): GovernedContext {
  return {
    signal,
    idempotencyKey: call.idempotency_key,
    requestId: call.request_id,
    traceId: request.state.trace_id,
    callId: call.call,
    chunk: (text) => {
      if (call.risk !== 'read_only') {
        throw refusal(call.tool, [reason('POLICY_BLOCKED', call.tool, 'only reads may stream')])
      }
      emitChunk(request, text)
    },
  }
}
