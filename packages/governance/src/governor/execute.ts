import { type GovernedContext, toolCore, type ToolCore } from '../contract/governed.ts'
import { messageOf, reason, type Reason, refusal } from '../contract/reason.ts'
import { type AdmittedCall, conflict, type GovernedRequest } from './request.ts'
import type { CallOutcome } from './settle.ts'
import { withTimeout } from './options.ts'
import { emitChunk } from './chunks.ts'

/** Runs an admitted call within its time and says what is known of its effect afterwards. */
export async function execute(request: GovernedRequest, call: AdmittedCall): Promise<CallOutcome> {
  const core = coreOf(request, call.tool)
  // The intent may have taken its time; what was stopped meanwhile never starts.
  if (request.stopped) return { type: 'error', reasons: [request.stopped], effect: 'absent' }
  try {
    return { type: 'result', value: await attempt(request, call, core) }
  } catch (error) {
    const why = error instanceof Stopped ? error.why : toReason(call, error)
    if (call.risk === 'read_only') return { type: 'error', reasons: [why], effect: 'absent' }
    const isClean = CLEAN_FAILURES.has(codeOf(error))
    const effect = isClean ? 'absent' : await probe(request, call, core)
    const reasons = effect === 'in_doubt' ? [why, reason('TOOL_IN_DOUBT', call.tool)] : [why]
    return { type: 'error', reasons, effect }
  }
}

/** Codes by which a tool says that it failed before it changed anything. */
const CLEAN_FAILURES: ReadonlySet<unknown> = new Set(['NO_EFFECT', 'TOOL_ARGUMENTS_INVALID'])

/** Asks the tool's probe whether the effect is there. No answer leaves it in doubt. */
export async function probe(
  request: GovernedRequest,
  call: AdmittedCall,
  { governance }: ToolCore,
): Promise<'applied' | 'absent' | 'in_doubt'> {
  const { probe: look } = governance
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
    // A probe that fails has settled nothing.
    return 'in_doubt'
  }
}

/** The inside of one of the task's tools. */
export function coreOf(request: GovernedRequest, name: string): ToolCore {
  const tool = request.task.tools.find((one) => one.name === name)
  const core = tool && toolCore(tool)
  if (!core) throw conflict(request, `its task has no tool "${name}"`)
  return core
}

class Stopped extends Error {
  readonly why: Reason

  constructor(why: Reason) {
    super(why.code)
    this.why = why
  }
}

function attempt(
  request: GovernedRequest,
  call: AdmittedCall,
  { tool, governance }: ToolCore,
): unknown {
  const { timeoutMs } = governance
  // Without a time of its own the call shares the run's signal: no controller per call.
  const controller = timeoutMs === undefined ? undefined : new AbortController()
  const signal = controller
    ? AbortSignal.any([request.controller.signal, controller.signal])
    : request.controller.signal
  // Tools take a context of their own framework's shape; ours fits UPP's.
  const run = tool.run as (args: unknown, context: unknown) => unknown
  const value = run(call.args, contextOf(request, call, signal))
  if (!isThenable(value)) return value
  return wait(request, call, value, (fire) => {
    if (timeoutMs === undefined) return () => undefined
    return request.core.timer(timeoutMs, () => {
      controller?.abort(reason('TOOL_TIMEOUT', call.tool))
      fire(reason('TOOL_TIMEOUT', call.tool, `${timeoutMs} ms`))
    })
  })
}

/** Waits for the tool; when stopped, only a little longer (a clean end beats a doubtful one). */
function wait(
  { core, running }: GovernedRequest,
  { call }: AdmittedCall,
  value: PromiseLike<unknown>,
  startTimer: (fire: (why: Reason) => void) => () => void,
): Promise<unknown> {
  return new Promise((resolve, reject) => {
    let cancelGrace: (() => void) | undefined
    const stop = (why: Reason): void => {
      cancelGrace ??= core.timer(core.limits.graceMs, () => reject(new Stopped(why)))
    }
    const cancelTimer = startTimer(stop)
    const entry = running.get(call)
    if (entry) entry.stop = stop
    const clean = (): void => {
      cancelTimer()
      cancelGrace?.()
    }
    value.then(
      (result) => {
        clean()
        resolve(result)
      },
      (error: unknown) => {
        clean()
        reject(error instanceof Error ? error : new Error(messageOf(error), { cause: error }))
      },
    )
  })
}

function isThenable(value: unknown): value is PromiseLike<unknown> {
  return typeof (value as { then?: unknown } | null | undefined)?.then === 'function'
}

function toReason({ tool }: AdmittedCall, error: unknown): Reason {
  return reason('TOOL_ERROR', tool, messageOf(error))
}

function codeOf(error: unknown): unknown {
  return typeof error === 'object' && error !== null && 'code' in error ? error.code : undefined
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
