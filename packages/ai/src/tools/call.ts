import {
  messageOf,
  deepFreeze,
  isDeepFrozen,
  type Clock,
  type JsonObject,
  type JsonValue,
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
  readonly gate?: ToolGate
  readonly journal?: ToolJournal
  /** Extra fields of the second argument of `run` and `approval`. */
  readonly context?: object
  /** Called with each value that a tool yields while it runs; the last value is also its result. */
  progress?(call: ToolCall, output: unknown): void
  /**
   * May replace the outcome that the model sees. Called for every
   * settled outcome, also of calls that did not run.
   */
  review?(call: ToolCall, outcome: SettledOutcome): SettledOutcome | Promise<SettledOutcome>
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

/** One record for a journal. A call that does not run has only a `call_end`. */
export type ToolEffect =
  | { readonly type: 'call_start'; readonly call: ToolCall }
  | { readonly type: 'call_end'; readonly call: ToolCall; readonly outcome: ToolOutcome }

/** A final outcome. A deferred call has none yet. */
export type SettledOutcome = Exclude<ToolOutcome, { readonly type: 'deferred' }>

/** The middleware hooks that are called for each call that runs. */
export interface ToolHooks {
  onToolCall?(call: ToolCall): void | Promise<void>
  onToolResult?(call: ToolCall, result: unknown, outcome: ToolOutcome): void | Promise<void>
}

/** One call that has an outcome. */
export interface SettledCall {
  /** The call with the arguments it ran with, which `onBeforeCall` or the gate may have replaced. */
  readonly call: ToolCall
  readonly outcome: ToolOutcome
  readonly durationMs: number
}

/** The settings shared by all calls of a batch. */
export interface CallSettings {
  readonly tools: readonly Tool[]
  readonly clock: Clock
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
}

/** A report of one call, from which the executor makes an event. */
export type CallReport =
  | { readonly type: 'start'; readonly call: ToolCall }
  | { readonly type: 'end'; readonly settled: SettledCall }

/**
 * Runs one call: check, record that it starts, run, convert the result, settle. An error of the tool becomes
 * an outcome that the model sees; an error of a hook, the gate or the journal is thrown. After an abort
 * nothing starts, and the late result of a tool that did not stop is dropped.
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
  const { call, refused, context } = await judge(requested, ports, environment)

  let own = refused
  let durationMs = 0
  if (!own) {
    await settings.hooks?.onToolCall?.(call)
    await ports.journal?.commit({ type: 'call_start', call })
    signal.throwIfAborted()
    report({ type: 'start', call })
    const startedAt = settings.clock.now()
    const tool = environment.tool!
    own = await runInTime(call, { ...environment, tool, progress: ports.progress }, context)
    durationMs = settings.clock.now() - startedAt
    signal.throwIfAborted()
  }

  const reviewed = own.type === 'deferred' ? own : await review(call, own, ports, environment)
  const outcome = await withModelForm(call, reviewed, environment.tool)

  // The gate records the outcome directly before the journal's `call_end`, so that both belong to one commit;
  // hooks, which may take long, run before.
  if (!refused && own.type !== 'deferred') await ports.gate?.settle?.(call, own)
  await ports.journal?.commit({ type: 'call_end', call, outcome })
  const settled = { call, outcome, durationMs }
  if (outcome.type === 'deferred') return settled
  if (refused)
    report({ type: 'start', call }) // a refused call also gets a start event, so that every end event has one
  else await settings.hooks?.onToolResult?.(call, toToolExecution(settled).result, outcome)
  report({ type: 'end', settled })
  return settled
}

interface Judgement {
  /** The call with frozen arguments; exactly these arguments are checked, recorded and passed to the tool. */
  readonly call: ToolCall
  /** The outcome of a call that must not run. */
  readonly refused?: ToolOutcome
  /** Extra fields of the context of `run`. */
  readonly context?: object
}

/**
 * Decides whether the call may run. Checks in this order: the tool exists, the arguments are complete, the
 * dependencies succeeded, the strategy's `onBeforeCall`, the tool's `approval`, the gate.
 */
async function judge(
  requested: ToolCall,
  ports: CallPorts,
  { settings, tool, refusal, signal }: CallEnvironment,
): Promise<Judgement> {
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
  const call = withArguments(requested, (typeof before === 'object' && before.params) || undefined)
  const proceeds = typeof before === 'object' ? before.proceed : before !== false
  if (!proceeds) {
    const reason = `The call to "${toolName}" was skipped by the application.`
    return { call, refused: { type: 'denied', reason } }
  }

  signal.throwIfAborted()
  const refused =
    tool.approval && !ports.isApproved
      ? await approve(call, tool, contextOf(call, signal, ports.context))
      : undefined
  signal.throwIfAborted()
  if (refused || !ports.gate) return { call, refused, context: ports.context }

  const admission = await ports.gate.admit(call)
  signal.throwIfAborted()
  switch (admission.type) {
    case 'allow':
      return {
        call: withArguments(call, admission.arguments),
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

type KnownTool = CallEnvironment & Pick<CallPorts, 'progress'> & { readonly tool: Tool }

async function runInTime(
  call: ToolCall,
  environment: KnownTool,
  context: object | undefined,
): Promise<ToolOutcome> {
  const { timeoutMs = Infinity } = environment.tool
  if (timeoutMs >= 2 ** 31) return run(call, environment, context) // no timer is that long
  const controller = new AbortController()
  const signal = AbortSignal.any([environment.signal, controller.signal])
  const startedAt = performance.now()
  let timer: ReturnType<typeof setTimeout> | undefined
  const tooLate = new Promise<ToolOutcome>((resolve) => {
    timer = setTimeout(() => {
      const message = `The tool "${call.toolName}" took longer than ${timeoutMs} ms and was stopped.`
      resolve(failed(message))
      controller.abort(new DOMException(message, 'TimeoutError'))
    }, timeoutMs)
  })
  try {
    const outcome = await Promise.race([run(call, { ...environment, signal }, context), tooLate])
    // A tool that blocks the event loop returns before the timer can fire, so the time is measured here as well.
    const ms = Math.round(performance.now() - startedAt)
    if (controller.signal.aborted || outcome.type !== 'done' || ms <= timeoutMs) return outcome
    return failed(
      `The tool "${call.toolName}" took ${ms} ms, longer than its ${timeoutMs} ms. The event loop was blocked, so it has run to its end. Calling it again would do its work a second time.`,
    )
  } finally {
    clearTimeout(timer)
  }
}

/** Runs the tool. Never rejects: an error of the tool, or a result that is not JSON, becomes an outcome. */
async function run(
  call: ToolCall,
  { tool, signal, progress }: KnownTool,
  context: object | undefined,
): Promise<ToolOutcome> {
  try {
    const args = call.arguments as never // `Tool` does not declare the types of its parameters
    const given = wantsContext(tool)
      ? await tool.run(args, contextOf(call, signal, context) as never)
      : await (tool.run as (params: never) => unknown).call(tool, args)
    const result = isGenerator(given)
      ? await readGenerator(given, signal, (output) => progress?.(call, output))
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
  signal: AbortSignal,
  extra: object | undefined,
): ToolContext {
  return { ...extra, signal, toolCallId, toolName }
}

/** Calls the hooks for an outcome; `onAfterCall` and `ports.review` may replace what the model sees. */
async function review(
  call: ToolCall,
  own: SettledOutcome,
  ports: CallPorts,
  { settings, tool }: CallEnvironment,
): Promise<SettledOutcome> {
  const { strategy } = settings
  let outcome = own
  if (tool && own.type === 'error') {
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

function errorOf({ message, cause }: Extract<ToolOutcome, { type: 'error' }>): Error {
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
      gate: first.gate ?? second.gate,
      journal: {
        commit: async (effect) => {
          for (const journal of journals) await journal.commit(effect)
        },
      },
      context: { ...second.context, ...first.context },
      progress: (running, output) => {
        first.progress?.(running, output)
        second.progress?.(running, output)
      },
      review: async (reviewed, outcome) => (await reviewer.review?.(reviewed, outcome)) ?? outcome,
    }
  }
}
