import type { GovernedContext, ToolCore } from '../contract/governed.ts'
import { messageOf, reason, refusal, type Reason } from '../contract/reason.ts'
import { emitChunk } from './chunks.ts'
import { withTimeout } from './options.ts'
import type { AdmittedCall, GovernedRequest } from './request.ts'
import type { CallOutcome } from './settle.ts'

/** Codes by which a tool says that it failed before it changed anything. */
const CLEAN_FAILURES: ReadonlySet<unknown> = new Set(['NO_EFFECT', 'TOOL_ARGUMENTS_INVALID'])

/** Runs the tool of an admitted call, within its time, and says what is known of its effect afterwards. */
export async function execute(request: GovernedRequest, call: AdmittedCall): Promise<CallOutcome> {
  const core = request.getTool(call.tool)
  // Writing the intent takes time. A run that was stopped meanwhile does not start the tool.
  if (request.stopped) return { type: 'error', reasons: [request.stopped], effect: 'absent' }
  try {
    return { type: 'result', value: await runTool(request, call, core) }
  } catch (error) {
    const why =
      error instanceof Stopped ? error.why : reason('TOOL_ERROR', call.tool, messageOf(error))
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
 * Calls the tool and waits for it. When the run is stopped or the tool's time is over, the signal is
 * aborted and the tool gets a little longer to end by itself (`graceMs`): an effect that a tool
 * confirms is better than one in doubt.
 */
function runTool(
  request: GovernedRequest,
  call: AdmittedCall,
  { tool, governance: { timeoutMs } }: ToolCore,
): unknown {
  const { core, running, controller } = request
  // Without a timeout the call shares the run's signal, so most calls need no controller.
  const own = timeoutMs === undefined ? undefined : new AbortController()
  const signal = own ? AbortSignal.any([controller.signal, own.signal]) : controller.signal
  // A tool declares the context of its own framework; ours has the shape that UPP asks for.
  const run = tool.run as (args: unknown, context: unknown) => unknown
  const value = run(call.args, contextOf(request, call, signal))
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
            own?.abort(reason('TOOL_TIMEOUT', call.tool))
            stop(reason('TOOL_TIMEOUT', call.tool, `${timeoutMs} ms`))
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
        reject(error instanceof Error ? error : new Error(messageOf(error), { cause: error }))
      },
    )
  })
}

function isThenable(value: unknown): value is PromiseLike<unknown> {
  return typeof (value as { then?: unknown } | null | undefined)?.then === 'function'
}

/** Asks the tool's probe whether the effect is there. Without a clear answer it stays in doubt. */
export async function probe(
  request: GovernedRequest,
  call: AdmittedCall,
  { governance: { probe: look } }: ToolCore,
): Promise<'applied' | 'absent' | 'in_doubt'> {
  if (!look) return 'in_doubt'
  const { timer, limits } = request.core
  try {
    const found = await withTimeout(
      async (signal) => look(call.args, contextOf(request, call, signal)),
      limits.undoTimeoutMs,
      timer,
    )
    if (found === true || found === 'applied') return 'applied'
    return found === false || found === 'absent' ? 'absent' : 'in_doubt'
  } catch {
    // A probe that fails has found out nothing.
    return 'in_doubt'
  }
}

/** What a tool is given beside its arguments. */
export function contextOf(
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
