import {
  argumentParserOf,
  isSameJson,
  messageOf,
  deepFreeze,
  isDeepFrozen,
  parsedByMember,
  type ArgumentParser,
  type Clock,
  type JsonObject,
  type JsonValue,
  type RecordedArguments,
} from '@skein/base'
import { hookError } from '../contract/error.ts'
import {
  defer,
  isDeferred,
  isDenied,
  type ApprovalResult,
  type DeferRequest,
  type Tool,
  type ToolCall,
  type ToolContext,
  type ToolExecution,
  type ToolOutcome,
  type ToolResult,
  type ToolUseStrategy,
} from '../contract/tool.ts'
import { wantsContext } from './define.ts'
import { ToolResultError, toResultJson } from './result.ts'

/**
 * What one call runs with: a gate (may refuse it), a journal (records it durably) and more; `ToolBatch.open`
 * makes it.
 */
export interface CallPorts {
  /** The outcome, if a journal has already recorded it; the call then does not run again. */
  readonly settled?: ToolOutcome
  /**
   * True if a person has already approved this call, e.g. before the run was resumed; the tool's `approval`
   * is skipped.
   */
  readonly isApproved?: boolean
  /**
   * The arguments that were parsed before, when a person was asked or before a crash. The call runs with exactly
   * these. If the definition of the tool has changed since, what the model sent is parsed again, and if the result
   * is another one, `isApproved` does not count.
   */
  readonly parsed?: RecordedArguments
  readonly gate?: ToolGate
  readonly journal?: ToolJournal
  /** Extra fields of the second argument of `run` and `approval`. */
  readonly context?: object
  /** Called with each value that a tool yields while it runs; the last value is also its result. */
  progress?(call: ToolCall, output: unknown): void
  /**
   * Decides whether a write that has started still gets an outcome after an abort with this reason. If so, returns the
   * message for a call that obeys its signal; a call that does not has `stopGraceMs` to end, and is `unknown` then.
   * Default: tools with the risk of a write have this time, and all others are dropped.
   */
  settlesAfter?(reason: unknown): string | undefined
  /**
   * Called when a write ends whose outcome was not waited for any more: it was recorded as unknown, or the batch was
   * aborted. Not called for a tool that stopped because of its signal.
   */
  late?(call: ToolCall, outcome: LateOutcome): void
  /**
   * May replace the outcome that the model sees. Called for every
   * settled outcome, also of calls that did not run. It may defer a call whose outcome is unknown, e.g. to ask a
   * person what the call did.
   */
  review?(call: ToolCall, outcome: SettledOutcome): ToolOutcome | Promise<ToolOutcome>
}

/**
 * Decides whether a call may run and records its outcome; governance implements it. Called after the tool's
 * own `approval` has agreed. An error thrown by a gate fails the batch.
 */
export interface ToolGate {
  admit(call: ToolCall): ToolAdmission | Promise<ToolAdmission>
  /**
   * Called after an admitted call has run, just before the journal commits its end. `outcome` is the real
   * outcome of the tool, before hooks replaced what the model sees. Not called for a deferred call.
   */
  settle?(call: ToolCall, outcome: SettledOutcome): void | Promise<void>
}

/** A gate's decision about one call. */
export type ToolAdmission =
  | {
      readonly type: 'allow'
      /**
       * The arguments that the gate checked; the call runs with exactly these arguments. Default: the call's
       * arguments.
       */
      readonly arguments?: JsonObject
      /** Additional fields for the context of `run`, e.g. an idempotency key. */
      readonly context?: object
    }
  | { readonly type: 'deny'; readonly reason: string }
  | { readonly type: 'defer'; readonly request: DeferRequest }

/** Records a call durably. Awaited before a call starts and after it ended; an error thrown here fails the batch. */
export interface ToolJournal {
  commit(effect: ToolEffect): void | Promise<void>
}

/**
 * One record for a journal. A call that does not run has only a `call_end`. The arguments of `call` are the parsed
 * ones; `parsed` repeats them with the hash of the schema, for `CallPorts.parsed`.
 */
export type ToolEffect =
  | { readonly type: 'call_start'; readonly call: ToolCall; readonly parsed?: RecordedArguments }
  | {
      readonly type: 'call_end'
      readonly call: ToolCall
      readonly outcome: ToolOutcome
      readonly parsed?: RecordedArguments
    }

/** A final outcome. A deferred call has none yet. */
export type SettledOutcome = Exclude<ToolOutcome, { readonly type: 'deferred' }>

/** The outcome of a tool whose call has ended without it. */
export type LateOutcome = Extract<ToolOutcome, { readonly type: 'done' | 'error' }>

/** The middleware hooks that are called for each call that runs. */
export interface ToolHooks {
  onToolCall?(call: ToolCall): void | Promise<void>
  onToolResult?(call: ToolCall, result: unknown, outcome: ToolOutcome): void | Promise<void>
}

/** One call that has an outcome. */
export interface SettledCall {
  /** The call with the arguments it ran with: parsed, if its tool parses them. */
  readonly call: ToolCall
  readonly outcome: ToolOutcome
  readonly durationMs: number
  /** The parsed arguments; undefined if the tool does not parse its arguments, or if they do not fit its schema. */
  readonly parsed?: RecordedArguments
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

/** The settings shared by all calls of a batch. */
export interface CallSettings {
  readonly tools: readonly Tool[]
  readonly clock: Clock
  /** What measures time limits. Default: the timers of the platform. */
  readonly timers?: CallTimers | undefined
  readonly strategy?: ToolUseStrategy
  readonly hooks?: ToolHooks
  /** Returns the gate, the journal and the context that a call runs with. Called once for each unsettled call. */
  readonly open?: (call: ToolCall) => CallPorts
  /** The provider whose model requested the calls; named in errors. */
  readonly provider?: string
}

/** The environment in which one call of a batch runs. */
export interface CallEnvironment {
  readonly settings: CallSettings
  /** Undefined when the model called an unknown tool. */
  readonly tool: Tool | undefined
  /** The reason why the schedule does not allow the call, if there is one. */
  readonly refusal: string | undefined
  readonly signal: AbortSignal
  readonly report: (report: CallReport) => void
  /** Keeps the batch open after an abort, as `settlesAfter` says; returns a function that ends this. */
  readonly hold?: (settlesAfter: NonNullable<CallPorts['settlesAfter']>) => () => unknown
  /** Called when the call has its outcome, which is then reviewed and journalled. */
  readonly settling?: () => void
}

/** A report of one call, from which the executor makes an event. */
export type CallReport =
  | { readonly type: 'start'; readonly call: ToolCall }
  | { readonly type: 'end'; readonly settled: SettledCall }

/**
 * Runs one call: parse, judge, record that it starts, run, convert the result, settle. An error of the tool becomes
 * an outcome that the model sees; an error of a hook, the gate or the journal is thrown. After an abort
 * nothing starts, and the result of a tool that did not stop goes to `CallPorts.late`.
 */
export async function runToolCall(
  requested: ToolCall,
  environment: CallEnvironment,
): Promise<SettledCall> {
  const { settings, signal, report } = environment
  const ports = settings.open?.(requested) ?? {}
  if (ports.settled) {
    const { settled } = ports
    const outcome = settled.type === 'done' ? doneOutcome(requested, settled.result) : settled
    return { call: requested, outcome, durationMs: 0 }
  }
  const { call, refused, context, parsed } = await judge(requested, ports, environment)

  let own = refused
  let durationMs = 0
  let release: (() => unknown) | undefined
  let left: Promise<LateOutcome | undefined> | undefined
  try {
    if (!own) {
      await settings.hooks?.onToolCall?.(call)
      await ports.journal?.commit({ type: 'call_start', call, parsed })
      signal.throwIfAborted()
      report({ type: 'start', call })
      const startedAt = settings.clock.now()
      const tool = environment.tool!
      const settlesAfter = graceOf(tool, ports)
      release = settlesAfter && environment.hold?.(settlesAfter)
      const { progress } = ports
      const ended = await runInTime(call, { ...environment, tool, progress, settlesAfter }, context)
      own = ended.outcome
      left = ended.left
      durationMs = settings.clock.now() - startedAt
      if (settlesAfter?.(signal.reason) === undefined) signal.throwIfAborted()
    }
    environment.settling?.()

    const reviewed = own.type === 'deferred' ? own : await review(call, own, ports, environment)
    const outcome = await withModelForm(call, reviewed, environment.tool)

    // The gate records the outcome directly before the journal's `call_end`, so that both belong to one commit;
    // hooks, which may take long, run before.
    if (!refused && own.type !== 'deferred') await ports.gate?.settle?.(call, own)
    await ports.journal?.commit({ type: 'call_end', call, outcome, parsed })
    const settled = { call, outcome, durationMs, parsed }
    if (outcome.type === 'deferred') return settled
    if (refused)
      report({ type: 'start', call }) // a refused call also gets a start event, so that every end event has one
    else await settings.hooks?.onToolResult?.(call, toToolExecution(settled).result, outcome)
    report({ type: 'end', settled })
    return settled
  } finally {
    release?.()
    // What became of the call is recorded by now, so the late result comes after it.
    void left?.then((late) => late && ports.late?.(call, late))
  }
}

interface Judgement {
  /** The call with frozen arguments; exactly these arguments are judged, recorded and passed to the tool. */
  readonly call: ToolCall
  readonly parsed?: RecordedArguments
  /** The outcome of a call that must not run. */
  readonly refused?: ToolOutcome
  /** Extra fields of the context of `run`. */
  readonly context?: object
}

/**
 * Decides whether the call may run, in this order: the tool exists, the arguments are complete, the strategy's
 * `onBeforeCall`, which may replace what the model sent, the parse, the dependencies, the tool's `approval`, the
 * gate. Nothing changes the arguments after the parse.
 */
async function judge(
  requested: ToolCall,
  ports: CallPorts,
  environment: CallEnvironment,
): Promise<Judgement> {
  const { settings, tool, refusal, signal } = environment
  const { strategy } = settings
  const { toolName, invalidArguments } = requested
  if (!tool) {
    const known = settings.tools.map(({ name }) => name).join(', ')
    const list = known === '' ? 'There are no tools.' : `Known tools: ${known}.`
    return { call: requested, refused: failed(`There is no tool "${toolName}". ${list}`) }
  }
  await strategyHook(settings, 'onToolCall', () =>
    strategy?.onToolCall?.(tool, requested.arguments, requested),
  )
  if (invalidArguments) {
    const message = `The arguments of "${toolName}" are not a complete JSON object (${invalidArguments.reason}). The tool did not run; call it again with valid arguments.`
    return { call: requested, refused: failed(message) }
  }
  if (refusal !== undefined)
    return { call: requested, refused: failed(`"${toolName}" did not run. ${refusal}`) }

  signal.throwIfAborted()
  const answer = await strategyHook(settings, 'onBeforeCall', () =>
    strategy?.onBeforeCall?.(tool, requested.arguments, requested),
  )
  const before = answer ?? true // a hook that returns nothing lets the call go on, and so does null
  const sent = withArguments(requested, (typeof before === 'object' && before.params) || undefined)
  const proceeds = typeof before === 'object' ? before.proceed : before !== false
  if (!proceeds) {
    const reason = `The call to "${toolName}" was skipped by the application.`
    return { call: sent, refused: { type: 'denied', reason } }
  }

  signal.throwIfAborted()
  const parser = argumentParserOf(tool)
  if (!parser) return admit({ call: sent, isApproved: ports.isApproved }, ports, environment)
  let phase: ParsePhase
  try {
    phase = await parse(sent, parser, ports)
  } catch (error) {
    return { call: sent, refused: failed(messageOf(error), error) }
  }
  signal.throwIfAborted()
  const judged = await admit(phase, ports, environment)
  const { call, refused } = judged
  // A gate may return a copy; the tool's `run` has to recognise it as parsed.
  if (!refused && call.arguments !== phase.call.arguments) parser.restore(call.arguments)
  return { ...judged, parsed: { arguments: call.arguments, schema: parser.schema } }
}

interface ParsePhase {
  /** The call with the arguments that are judged and run. */
  readonly call: ToolCall
  /** Whether a person has approved the call with exactly these arguments. */
  readonly isApproved: boolean | undefined
}

/**
 * Returns the call with parsed arguments: those that were recorded before, or what the schema makes of those that the
 * model sent. Throws if they do not fit.
 */
async function parse(
  sent: ToolCall,
  parser: ArgumentParser,
  { parsed: recorded, isApproved }: CallPorts,
): Promise<ParsePhase> {
  if (recorded?.schema === parser.schema) {
    const call = Object.freeze({ ...sent, arguments: parser.restore(recorded.arguments) })
    return { call, isApproved }
  }
  const args = await parser.parse(sent.arguments)
  // Whoever approved the call saw the recorded arguments or, without a record, those that the model sent.
  const shown = recorded?.arguments ?? sent.arguments
  const isSame = !isApproved || isSameJson(args, shown)
  return { call: Object.freeze({ ...sent, arguments: args }), isApproved: isApproved && isSame }
}

/** Asks the tool's `approval` and the gate whether the call may run. */
async function admit(
  { call, isApproved }: ParsePhase,
  ports: CallPorts,
  { tool, signal }: CallEnvironment,
): Promise<Judgement> {
  const refused =
    tool?.approval && !isApproved
      ? await approve(call, tool, contextOf(call, tool, signal, ports.context))
      : undefined
  signal.throwIfAborted()
  if (refused || !ports.gate) return { call, refused, context: ports.context }

  const admission = await ports.gate.admit(call)
  signal.throwIfAborted()
  switch (admission.type) {
    case 'allow':
      return {
        call: admission.arguments ? withArguments(call, admission.arguments) : call,
        context: { ...ports.context, ...admission.context },
      }
    case 'deny':
      return { call, refused: { type: 'denied', reason: admission.reason } }
    case 'defer':
      return { call, refused: deferredOutcome(call, admission.request) }
  }
}

/**
 * Asks the tool's `approval`. Returns the outcome of a call that must not run; undefined only after `true`.
 */
async function approve(
  call: ToolCall,
  tool: Tool,
  context: ToolContext,
): Promise<ToolOutcome | undefined> {
  let answer: ApprovalResult
  try {
    // `Tool` does not declare its parameter types.
    answer = await tool.approval!(call.arguments as never, context as never)
    if (isDeferred(answer)) return deferredOutcome(call, answer)
    if (isDenied(answer)) return { type: 'denied', reason: answer.reason }
  } catch (error) {
    return failed(`Approval failed: ${messageOf(error)}`, error)
  }
  if (answer === true) return undefined
  return { type: 'denied', reason: `The call to "${call.toolName}" was denied.` }
}

type KnownTool = CallEnvironment &
  Pick<CallPorts, 'progress' | 'settlesAfter'> & {
    readonly tool: Tool
    /** When it aborts, a generator is stopped at its next value; by default, this is the signal of the tool. */
    readonly cut?: AbortSignal
  }

/** Whether a call that may have run can run again. */
function mayRepeat({ risk, idempotent }: Tool): boolean {
  return risk === 'read_only' || idempotent === true
}

/**
 * Returns what decides whether a call that runs still gets an outcome after an abort. Without ports, a tool that is
 * declared as a write has the grace; a tool that declares nothing is not waited for.
 */
function graceOf(tool: Tool, ports: CallPorts): CallPorts['settlesAfter'] {
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

/** The end of a call: its outcome and, if the tool goes on without it, what the tool ends with. */
interface Ended {
  readonly outcome: ToolOutcome
  readonly left?: Promise<LateOutcome | undefined>
}

/**
 * Runs the tool with its time limit. A call that may run again fails at the limit. Any other call has a grace to end by
 * itself, because a result is better than a write of which nobody knows whether it took effect.
 */
async function runInTime(
  call: ToolCall,
  environment: KnownTool,
  context: object | undefined,
): Promise<Ended> {
  const { tool, settings, settlesAfter } = environment
  const { timeoutMs = Infinity } = tool
  const hasLimit = timeoutMs < 2 ** 31 // no timer is longer
  const outer = environment.signal
  const repeats = mayRepeat(tool)
  if (!hasLimit && !settlesAfter) {
    const outcome = await run(call, environment, context)
    const isDropped = outer.aborted && !repeats
    return { outcome, left: isDropped ? Promise.resolve(lateOutcome(outcome, outer)) : undefined }
  }
  const limit = new AbortController()
  const end = new AbortController()
  const signal = AbortSignal.any([outer, limit.signal])
  const endOrOuter = settlesAfter ? end.signal : AbortSignal.any([outer, end.signal])
  const startedAt = performance.now()
  const running = run(call, { ...environment, signal, cut: repeats ? signal : endOrOuter }, context)
  const left = repeats ? undefined : running.then((outcome) => lateOutcome(outcome, signal))
  const message = `The tool "${call.toolName}" took longer than ${timeoutMs} ms and was stopped.`
  const { timers } = settings
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

  const { stopGraceMs = STOP_GRACE_MS } = settings.strategy ?? {}
  const late = await inTime(running, stopGraceMs, {
    signal: settlesAfter ? undefined : outer,
    timers,
  })
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
 * Returns the outcome of a tool that has thrown because of its signal. If it is declared as a write, nobody knows how
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

/** What the model is told about a call that may or may not have taken effect. */
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

/**
 * Whether a tool failed because it obeyed the signal. Clients of HTTP wrap the reason of the signal in errors of their
 * own, so the causes of the error count too. A tool that knows that it had no effect says so with `NoEffectError`.
 */
export function isAbort(cause: unknown, ...signals: readonly AbortSignal[]): boolean {
  try {
    let error = cause
    for (let depth = 0; depth < MAX_CAUSES && error !== undefined; depth++) {
      if (signals.some(({ aborted, reason }) => aborted && reason === error)) return true
      if (!(error instanceof Error)) return false
      const { code } = error as { readonly code?: unknown }
      if (code === 'NO_EFFECT') return false
      if (ABORT_NAMES.has(error.name) || ABORT_NAMES.has(error.constructor.name)) return true
      if (code === 'ERR_CANCELED') return true // axios
      error = error.cause
    }
  } catch {
    // A tool may throw a proxy that throws when it is read.
  }
  return false
}

const MAX_CAUSES = 5

/** Names of errors, or of their classes, by which clients say that a request was aborted: fetch, axios, SDKs of models. */
const ABORT_NAMES: ReadonlySet<string> = new Set([
  'AbortError',
  'TimeoutError',
  'CanceledError',
  'APIUserAbortError',
  'RequestAbortedError',
])

/** Runs the tool. Never rejects: an error of the tool, or a result that is not JSON, becomes an outcome. */
async function run(
  call: ToolCall,
  { tool, signal, cut = signal, progress }: KnownTool,
  context: object | undefined,
): Promise<ToolOutcome> {
  try {
    const args = call.arguments as never // `Tool` does not declare the types of its parameters
    const given = wantsContext(tool)
      ? await tool.run(args, contextOf(call, tool, signal, context) as never)
      : await (tool.run as (params: never) => unknown).call(tool, args)
    const result = isGenerator(given)
      ? await readGenerator(given, cut, (output) => progress?.(call, output))
      : given
    return isDeferred(result) ? deferredOutcome(call, result) : doneOutcome(call, result)
  } catch (error) {
    return failed(messageOf(error), error)
  }
}

function isGenerator(value: unknown): value is AsyncGenerator<unknown, unknown> {
  if (typeof value !== 'object' || value === null) return false
  const { next, return: end } = value as Partial<AsyncGenerator>
  return Symbol.asyncIterator in value && typeof next === 'function' && typeof end === 'function'
}

/**
 * Reads a tool that yields its progress. Its result is what it returns, or the last value it yields if it
 * returns nothing. After an abort the tool is told to stop and nothing more is reported.
 */
async function readGenerator(
  generator: AsyncGenerator<unknown, unknown>,
  signal: AbortSignal,
  progress: (output: unknown) => void,
): Promise<unknown> {
  let last: unknown
  let isDone = false
  try {
    for (;;) {
      const step = await generator.next()
      if ((isDone = step.done === true)) return step.value === undefined ? last : step.value
      signal.throwIfAborted()
      if (isDeferred(step.value)) return step.value
      last = step.value
      progress(toResultJson(last, 'progress'))
    }
  } finally {
    if (!isDone) void Promise.resolve(generator.return(undefined)).catch(() => {}) // its error has no reader
  }
}

/** Adds the form of a result that the model sees, for a tool with `toModel`. */
async function withModelForm(
  call: ToolCall,
  outcome: ToolOutcome,
  tool: Tool | undefined,
): Promise<ToolOutcome> {
  if (outcome.type !== 'done' || !tool?.toModel) return outcome
  try {
    const form = await (tool.toModel as (result: unknown) => unknown)(outcome.result)
    return { ...outcome, modelResult: toResultJson(form) }
  } catch (error) {
    const message = `The tool "${call.toolName}" has run, but its result cannot be shown to the model: ${messageOf(error)} Calling it again would do its work a second time.`
    return failed(message, error)
  }
}

function contextOf(
  { toolCallId, toolName }: ToolCall,
  tool: Tool,
  signal: AbortSignal,
  extra: object | undefined,
): ToolContext {
  const parser = argumentParserOf(tool)
  if (!parser) return { ...extra, signal, toolCallId, toolName }
  return { ...extra, ...parsedByMember(parser), signal, toolCallId, toolName }
}

/** Calls the hooks for an outcome; `onAfterCall` and `ports.review` may replace what the model sees. */
async function review(
  call: ToolCall,
  own: SettledOutcome,
  ports: CallPorts,
  { settings, tool }: CallEnvironment,
): Promise<ToolOutcome> {
  const { strategy } = settings
  let outcome = own
  if (tool && (own.type === 'error' || own.type === 'unknown')) {
    await strategyHook(settings, 'onError', () =>
      strategy?.onError?.(tool, call.arguments, errorOf(own), call),
    )
  }
  if (tool && own.type === 'done') {
    const after = await strategyHook(settings, 'onAfterCall', () =>
      strategy?.onAfterCall?.(tool, call.arguments, own.result, call),
    )
    if (after) outcome = doneOutcome(call, after.result)
  }
  if (!ports.review) return outcome
  const reviewed = await ports.review(call, outcome)
  return reviewed.type === 'done' && reviewed !== outcome
    ? doneOutcome(call, reviewed.result)
    : reviewed
}

/** Converts a tool's return value with `toResultJson`; if that fails, returns an error for the model. */
export function doneOutcome({ toolName }: ToolCall, result: unknown): SettledOutcome {
  try {
    return { type: 'done', result: toResultJson(result) }
  } catch (error) {
    if (!(error instanceof ToolResultError)) throw error
    const message = `The tool "${toolName}" has run, but its result cannot be passed on: ${error.message}. Calling it again would do its work a second time.`
    return { type: 'error', message, code: error.code, cause: error }
  }
}

/** Returns a deferred outcome. Its request must be JSON too, because it is stored and answered elsewhere. */
function deferredOutcome({ toolName }: ToolCall, given: DeferRequest): ToolOutcome {
  try {
    const { kind, request } = defer(given)
    return { type: 'deferred', request: { kind, request: toResultJson(request, 'request') } }
  } catch (error) {
    const message = `The call to "${toolName}" cannot wait for an answer: ${messageOf(error)}.`
    return failed(message, error)
  }
}

function errorOf(outcome: Extract<ToolOutcome, { type: 'error' | 'unknown' }>): Error {
  const { message } = outcome
  if (outcome.type === 'unknown') return new Error(message)
  const { cause } = outcome
  try {
    if (cause instanceof Error) return cause
  } catch {
    // A tool may throw a proxy that throws when it is read, so the proxy becomes the cause without being read.
  }
  return new Error(message, { cause })
}

function failed(message: string, cause?: unknown): Extract<ToolOutcome, { type: 'error' }> {
  return cause === undefined ? { type: 'error', message } : { type: 'error', message, cause }
}

/** Returns the call with frozen arguments, so that nobody can change them between the check and the run. */
function withArguments(call: ToolCall, args: JsonObject = call.arguments): ToolCall {
  if (args === call.arguments && isDeepFrozen(call)) return call
  const own: JsonValue = isDeepFrozen(args) ? args : toResultJson(args, 'arguments')
  // `toResultJson` returns a plain object for a plain object.
  return deepFreeze({ ...call, arguments: own as JsonObject })
}

/** Calls a hook of the strategy. If it throws, the error says which hook it was. */
export async function strategyHook<T>(
  { provider = 'skein' }: Pick<CallSettings, 'provider'>,
  name: string,
  call: () => T | Promise<T>,
): Promise<T> {
  try {
    return await call()
  } catch (error) {
    throw hookError(error, `${name} of the tool strategy`, { provider, modality: 'llm' })
  }
}

/** Returns the result that the model sees. Must not be used for a deferred call, which has no result yet. */
export function toToolResult(settled: SettledCall): ToolResult {
  const { toolCallId, toolName, result, isError } = toToolExecution(settled)
  const { outcome } = settled
  const hasForm = outcome.type === 'done' && outcome.modelResult !== undefined
  return { toolCallId, toolName, result: hasForm ? outcome.modelResult : result, isError }
}

/** Returns the entry for a call in the turn's `toolExecutions` (UPP §7.3). */
export function toToolExecution({ call, outcome, durationMs }: SettledCall): ToolExecution {
  const { toolCallId, toolName, arguments: args } = call
  const base = { toolName, toolCallId, arguments: args, duration: durationMs }
  switch (outcome.type) {
    case 'done':
      return { ...base, result: outcome.result, isError: false }
    case 'error':
      return { ...base, result: outcome.message, isError: true }
    case 'denied':
      return { ...base, result: outcome.reason, isError: true }
    case 'deferred':
      return { ...base, result: outcome.request, isError: false }
    case 'unknown':
      return { ...base, result: outcome.message, isError: true, isUnknown: true }
  }
}

/**
 * Combines the ports (gate, journal and so on) of a model's instance, the owner, with those of one batch that
 * runs with it. Both journals commit, the owner's first. The gate and review of the batch are used only where
 * the owner has none.
 */
export function joinPorts(
  owner: CallSettings['open'],
  batch: CallSettings['open'],
): CallSettings['open'] {
  if (!owner || !batch) return owner ?? batch
  return (call) => {
    const [first, second] = [owner(call), batch(call)]
    const reviewer = first.review ? first : second
    const journals = [first.journal, second.journal].filter((journal) => journal !== undefined)
    return {
      settled: first.settled ?? second.settled,
      isApproved: first.isApproved || second.isApproved,
      parsed: first.parsed ?? second.parsed,
      gate: first.gate ?? second.gate,
      journal: {
        commit: async (effect) => {
          for (const journal of journals) await journal.commit(effect)
        },
      },
      context: { ...second.context, ...first.context },
      settlesAfter:
        first.settlesAfter || second.settlesAfter
          ? (reason) => first.settlesAfter?.(reason) ?? second.settlesAfter?.(reason)
          : undefined,
      late: (ended, outcome) => {
        first.late?.(ended, outcome)
        second.late?.(ended, outcome)
      },
      progress: (running, output) => {
        first.progress?.(running, output)
        second.progress?.(running, output)
      },
      review: async (reviewed, outcome) => (await reviewer.review?.(reviewed, outcome)) ?? outcome,
    }
  }
}
