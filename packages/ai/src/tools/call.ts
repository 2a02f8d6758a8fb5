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
  isPromise,
  type MaybePromise,
} from '@skein/base'
import { hookError } from '../contract/error.ts'
import {
  isDeferred,
  isDenied,
  type ApprovalResult,
  type Tool,
  type ToolCall,
  type ToolContext,
  type ToolOutcome,
  type ToolUseStrategy,
} from '../contract/tool.ts'
import { wantsContext } from './define.ts'
import { toResultJson } from './result.ts'
import {
  type CallPorts,
  type OpenPorts,
  type SettledOutcome,
  type LateOutcome,
} from './call-ports.ts'
import {
  type SettledCall,
  doneOutcome,
  deferredOutcome,
  errorOf,
  failed,
  toToolExecution,
} from './outcome.ts'
import { isGenerator, readGenerator } from './yielded-progress.ts'
import { type CallTimers, graceOf, runInTime } from './run-in-time.ts'

/** The middleware hooks that are called for each call that runs. */
export interface ToolHooks {
  onToolCall?(call: ToolCall): void | Promise<void>
  onToolResult?(call: ToolCall, result: unknown, outcome: ToolOutcome): void | Promise<void>
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
  readonly open?: OpenPorts
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
  /** Keeps the batch open after an abort, as `settlesAfter` says, until the call has ended. */
  readonly hold?: (settlesAfter: NonNullable<CallPorts['settlesAfter']>) => void
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
  let left: Promise<LateOutcome | undefined> | undefined
  try {
    if (!own) {
      // Each wait costs time even if there is nothing to wait for, so only hooks and ports that exist are awaited.
      if (settings.hooks?.onToolCall) await settings.hooks.onToolCall(call)
      if (ports.journal) await ports.journal.commit({ type: 'call_start', call, parsed })
      signal.throwIfAborted()
      report({ type: 'start', call })
      const startedAt = settings.clock.now()
      const tool = environment.tool!
      const settlesAfter = graceOf(tool, ports)
      if (settlesAfter) environment.hold?.(settlesAfter)
      const start = (toolSignal: AbortSignal, cut: AbortSignal): Promise<ToolOutcome> =>
        run(call, { tool, signal: toolSignal, cut, ports }, context)
      const ended = await runInTime({
        call,
        tool,
        signal,
        settlesAfter,
        start,
        stopGraceMs: settings.strategy?.stopGraceMs,
        timers: settings.timers,
      })
      own = ended.outcome
      left = ended.left
      durationMs = settings.clock.now() - startedAt
      if (settlesAfter?.(signal.reason) === undefined) signal.throwIfAborted()
    }
    environment.settling?.()

    // A refusal is awaited in any case: the batch fails if a hook of another call throws meanwhile, and a failed batch
    // reports no more events.
    const reviewed =
      own.type !== 'deferred' && (refused || settings.strategy || ports.review)
        ? await review(call, own, ports, environment)
        : own
    const outcome =
      refused || environment.tool?.toModel
        ? await withModelForm(call, reviewed, environment.tool)
        : reviewed

    // The gate records the outcome directly before the journal's `call_end`, so that both belong to one commit;
    // hooks, which may take long, run before.
    if (!refused && own.type !== 'deferred' && ports.gate?.settle)
      await ports.gate.settle(call, own)
    if (ports.journal) await ports.journal.commit({ type: 'call_end', call, outcome, parsed })
    const settled = { call, outcome, durationMs, parsed }
    if (outcome.type === 'deferred') return settled
    if (refused)
      report({ type: 'start', call }) // a refused call also gets a start event, so that every end event has one
    else if (settings.hooks?.onToolResult)
      await settings.hooks.onToolResult(call, toToolExecution(settled).result, outcome)
    report({ type: 'end', settled })
    return settled
  } finally {
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
  if (strategy?.onToolCall)
    await strategyHook(settings, 'onToolCall', () =>
      strategy.onToolCall?.(tool, requested.arguments, requested),
    )
  if (invalidArguments) {
    const message = `The arguments of "${toolName}" are not a complete JSON object (${invalidArguments.reason}). The tool did not run; call it again with valid arguments.`
    return { call: requested, refused: failed(message) }
  }
  if (refusal !== undefined)
    return { call: requested, refused: failed(`"${toolName}" did not run. ${refusal}`) }

  signal.throwIfAborted()
  const answer =
    strategy?.onBeforeCall &&
    (await strategyHook(settings, 'onBeforeCall', () =>
      strategy.onBeforeCall?.(tool, requested.arguments, requested),
    ))
  const before = answer ?? true // a hook that returns nothing lets the call continue, and so does null
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
  const admission = admit(phase, ports, environment)
  const judged = isPromise(admission) ? await admission : admission
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
  // The person who approved the call saw the recorded arguments or, without a record, those that the model sent.
  const shown = recorded?.arguments ?? sent.arguments
  const isSame = !isApproved || isSameJson(args, shown)
  return { call: Object.freeze({ ...sent, arguments: args }), isApproved: isApproved && isSame }
}

/** Asks the tool's `approval` and the gate, if there are any, whether the call may run. */
function admit(
  phase: ParsePhase,
  ports: CallPorts,
  environment: CallEnvironment,
): MaybePromise<Judgement> {
  const needsApproval = environment.tool?.approval && !phase.isApproved
  if (needsApproval || ports.gate) return askToAdmit(phase, ports, environment)
  return { call: phase.call, context: ports.context }
}

async function askToAdmit(
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

interface RunningTool {
  readonly tool: Tool
  readonly signal: AbortSignal
  readonly cut: AbortSignal
  readonly ports: CallPorts
}

/** Runs the tool. Never rejects: an error of the tool, or a result that is not JSON, becomes an outcome. */
async function run(
  call: ToolCall,
  { tool, signal, cut, ports }: RunningTool,
  context: object | undefined,
): Promise<ToolOutcome> {
  try {
    const args = call.arguments as never // `Tool` does not declare the types of its parameters
    const output: unknown = wantsContext(tool)
      ? tool.run(args, contextOf(call, tool, signal, context) as never)
      : (tool.run as (params: never) => unknown).call(tool, args)
    const answer = isThenable(output) ? await output : output
    const result = isGenerator(answer)
      ? await readGenerator(answer, cut, (output) => ports.progress?.(call, output))
      : answer
    return isDeferred(result) ? deferredOutcome(call, result) : doneOutcome(call, result)
  } catch (error) {
    return failed(messageOf(error), error)
  }
}

function isThenable(value: unknown): value is PromiseLike<unknown> {
  if ((typeof value !== 'object' && typeof value !== 'function') || value === null) return false
  return typeof (value as Partial<PromiseLike<unknown>>).then === 'function'
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
  if (tool && strategy?.onError && (own.type === 'error' || own.type === 'unknown')) {
    await strategyHook(settings, 'onError', () =>
      strategy.onError?.(tool, call.arguments, errorOf(own), call),
    )
  }
  if (tool && strategy?.onAfterCall && own.type === 'done') {
    const after = await strategyHook(settings, 'onAfterCall', () =>
      strategy.onAfterCall?.(tool, call.arguments, own.result, call),
    )
    if (after) outcome = doneOutcome(call, after.result)
  }
  if (!ports.review) return outcome
  const reviewed = await ports.review(call, outcome)
  return reviewed.type === 'done' && reviewed !== outcome
    ? doneOutcome(call, reviewed.result)
    : reviewed
}

/** Returns the call with frozen arguments, so that they cannot change between the check and the run. */
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
