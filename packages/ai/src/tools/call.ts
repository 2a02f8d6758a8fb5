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

/** What one call is given by whoever runs it; `ToolBatch.open` makes one object per call. */
export interface CallPorts {
  /** The outcome, where a journal has it already: then nothing of the call happens again. */
  readonly settled?: ToolOutcome
  /** Somebody has approved this call already, e.g. before a resume: the tool's `approval` is not asked. */
  readonly isApproved?: boolean
  readonly gate?: ToolGate
  readonly journal?: ToolJournal
  /** Extra fields of the second argument of `run` and `approval`. */
  readonly context?: object
  /** May replace what the model sees: asked about every settled outcome, also of calls that did not run. */
  review?(call: ToolCall, outcome: SettledOutcome): SettledOutcome | Promise<SettledOutcome>
}

/**
 * Decides whether a call may run and records what came of it; governance is one. Asked after the
 * tool's own `approval` agreed. What a gate throws fails the batch.
 */
export interface ToolGate {
  admit(call: ToolCall): ToolAdmission | Promise<ToolAdmission>
  /**
   * After an admitted call has run, just before the journal commits its end. `outcome` is what the
   * tool really did, before hooks replaced what the model sees. Not called for a deferred call.
   */
  settle?(call: ToolCall, outcome: SettledOutcome): void | Promise<void>
}

/** A gate's decision about one call. */
export type ToolAdmission =
  | {
      readonly type: 'allow'
      /** The arguments that were judged; exactly these run. Default: the call's. */
      readonly arguments?: JsonObject
      /** More fields of the context of `run`, e.g. an idempotency key. */
      readonly context?: object
    }
  | { readonly type: 'deny'; readonly reason: string }
  | { readonly type: 'defer'; readonly request: DeferRequest }

/** Makes a call durable. Awaited before a call starts and after it ended; what it throws fails the batch. */
export interface ToolJournal {
  commit(effect: ToolEffect): void | Promise<void>
}

/** What a journal is given. A call that does not run has an end only. */
export type ToolEffect =
  | { readonly type: 'call_start'; readonly call: ToolCall }
  | { readonly type: 'call_end'; readonly call: ToolCall; readonly outcome: ToolOutcome }

/** An outcome that is final; a deferred call has none yet. */
export type SettledOutcome = Exclude<ToolOutcome, { readonly type: 'deferred' }>

/** The middleware's view of each call that runs. */
export interface ToolHooks {
  onToolCall?(call: ToolCall): void | Promise<void>
  onToolResult?(call: ToolCall, result: unknown, outcome: ToolOutcome): void | Promise<void>
}

/** One call that has an outcome. */
export interface SettledCall {
  /** With the arguments that ran, which `onBeforeCall` or the gate may have replaced. */
  readonly call: ToolCall
  readonly outcome: ToolOutcome
  readonly durationMs: number
}

/** What all calls of a batch share. */
export interface CallSettings {
  readonly tools: readonly Tool[]
  readonly clock: Clock
  readonly strategy?: ToolUseStrategy
  readonly hooks?: ToolHooks
  /** Gives one call its gate, journal and context. Called once for each call that is not settled yet. */
  readonly open?: (call: ToolCall) => CallPorts
  /** Who asked for the calls; named in errors. */
  readonly provider?: string
}

/** One call in its batch. */
export interface CallEnvironment {
  readonly settings: CallSettings
  /** Undefined when the model called something that is no tool. */
  readonly tool: Tool | undefined
  /** Why the schedule does not let it run, if so. */
  readonly refusal: string | undefined
  readonly signal: AbortSignal
  readonly report: (report: CallReport) => void
}

/** What the executor turns into events. */
export type CallReport =
  | { readonly type: 'start'; readonly call: ToolCall }
  | { readonly type: 'end'; readonly settled: SettledCall }

/**
 * The life of one call: judge, intent, run, result, settle. What the tool does wrong becomes an
 * outcome that the model is told; what a hook, the gate or the journal does wrong is thrown. After
 * an abort nothing starts, and the late result of a tool that did not stop is dropped.
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
    own = await runInTime(call, { ...environment, tool: environment.tool! }, context)
    durationMs = settings.clock.now() - startedAt
    signal.throwIfAborted()
  }

  const outcome = own.type === 'deferred' ? own : await review(call, own, ports, environment)

  // Last before the commit: hooks may take long, and what the gate records belongs to this commit.
  if (!refused && own.type !== 'deferred') await ports.gate?.settle?.(call, own)
  await ports.journal?.commit({ type: 'call_end', call, outcome })
  const settled = { call, outcome, durationMs }
  if (outcome.type === 'deferred') return settled
  if (refused)
    report({ type: 'start', call }) // so that every call that is answered has a start
  else await settings.hooks?.onToolResult?.(call, toToolExecution(settled).result, outcome)
  report({ type: 'end', settled })
  return settled
}

interface Judgement {
  /** With frozen arguments: these very arguments are judged, committed and run. */
  readonly call: ToolCall
  /** Why the call does not run, as an outcome. */
  readonly refused?: ToolOutcome
  /** Extra fields of the context of `run`. */
  readonly context?: object
}

/**
 * Whether the call may run. In this order: is it a tool, are the arguments whole, did its
 * dependencies succeed, the strategy's `onBeforeCall`, the tool's `approval`, the gate.
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
  const before = await strategyHook(settings, 'onBeforeCall', () =>
    strategy?.onBeforeCall?.(tool, requested.arguments, requested),
  )
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

/** The outcome that the tool's `approval` decides without a run, if it does. Only `true` lets it run. */
async function approve(
  call: ToolCall,
  tool: Tool,
  context: ToolContext,
): Promise<ToolOutcome | undefined> {
  let answer: ApprovalResult
  try {
    answer = await tool.approval!(call.arguments as never, context as never) // Tool hides its types
    if (isDeferred(answer)) return deferredOutcome(call, answer)
    if (isDenied(answer)) return { type: 'denied', reason: answer.reason }
  } catch (error) {
    return failed(`Approval failed: ${messageOf(error)}`, error)
  }
  if (answer === true) return undefined
  return { type: 'denied', reason: `The call to "${call.toolName}" was denied.` }
}

type KnownTool = CallEnvironment & { readonly tool: Tool }

async function runInTime(
  call: ToolCall,
  environment: KnownTool,
  context: object | undefined,
): Promise<ToolOutcome> {
  const { timeoutMs } = environment.tool
  if (timeoutMs === undefined) return run(call, environment, context)
  const controller = new AbortController()
  const signal = AbortSignal.any([environment.signal, controller.signal])
  let timer: ReturnType<typeof setTimeout> | undefined
  const tooLate = new Promise<ToolOutcome>((resolve) => {
    timer = setTimeout(() => {
      const message = `The tool "${call.toolName}" took longer than ${timeoutMs} ms and was stopped.`
      resolve(failed(message))
      controller.abort(new DOMException(message, 'TimeoutError'))
    }, timeoutMs)
  })
  try {
    return await Promise.race([run(call, { ...environment, signal }, context), tooLate])
  } finally {
    clearTimeout(timer)
  }
}

/** Never rejects: the model is told what the tool threw, or why its result is not JSON. */
async function run(
  call: ToolCall,
  { tool, signal }: KnownTool,
  context: object | undefined,
): Promise<ToolOutcome> {
  try {
    const args = call.arguments as never // Tool hides the types of its parameters
    const result = wantsContext(tool)
      ? await tool.run(args, contextOf(call, signal, context) as never)
      : await (tool.run as (params: never) => unknown).call(tool, args)
    return isDeferred(result) ? deferredOutcome(call, result) : doneOutcome(call, result)
  } catch (error) {
    return failed(messageOf(error), error)
  }
}

function contextOf(
  { toolCallId, toolName }: ToolCall,
  signal: AbortSignal,
  extra: object | undefined,
): ToolContext {
  return { ...extra, signal, toolCallId, toolName }
}

/** The hooks' look at an outcome; `onAfterCall` and the port's `review` may replace what the model sees. */
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

/** A result by the result rule, or the error that the model is told instead. */
export function doneOutcome({ toolName }: ToolCall, result: unknown): SettledOutcome {
  try {
    return { type: 'done', result: toResultJson(result) }
  } catch (error) {
    if (!(error instanceof ToolResultError)) throw error
    const message = `The tool "${toolName}" has run, but its result cannot be passed on: ${error.message}. Calling it again would do its work a second time.`
    return { type: 'error', message, code: error.code, cause: error }
  }
}

/** The request is stored and answered elsewhere, so the result rule holds for it too. */
function deferredOutcome({ toolName }: ToolCall, { kind, request }: DeferRequest): ToolOutcome {
  try {
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
    // A tool may throw a proxy whose traps throw; it is kept as the cause, unread.
  }
  return new Error(message, { cause })
}

function failed(message: string, cause?: unknown): Extract<ToolOutcome, { type: 'error' }> {
  return cause === undefined ? { type: 'error', message } : { type: 'error', message, cause }
}

/** The call with these arguments, frozen, so that nobody can swap them between judgement and run. */
function withArguments(call: ToolCall, args: JsonObject = call.arguments): ToolCall {
  if (args === call.arguments && isDeepFrozen(call)) return call
  const own: JsonValue = isDeepFrozen(args) ? args : toResultJson(args, 'arguments')
  return deepFreeze({ ...call, arguments: own as JsonObject }) // a plain object stays one
}

async function strategyHook<T>(
  { provider = 'skein' }: CallSettings,
  name: string,
  call: () => T | Promise<T>,
): Promise<T> {
  try {
    return await call()
  } catch (error) {
    throw hookError(error, `${name} of the tool strategy`, { provider, modality: 'llm' })
  }
}

/** What the model is told about a call. Not for a deferred one: it has no result yet. */
export function toToolResult(settled: SettledCall): ToolResult {
  const { toolCallId, toolName, result, isError } = toToolExecution(settled)
  return { toolCallId, toolName, result, isError }
}

/** What the turn reports about a call (UPP §7.3). */
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
 * The ports of a call that two parties take part in: the owner of a model's instance and whoever runs
 * one batch with it. Both journals commit, the owner's first. The owner's gate and review count; those
 * of the batch only where the owner has none.
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
      review: async (reviewed, outcome) => (await reviewer.review?.(reviewed, outcome)) ?? outcome,
    }
  }
}
