import { deepFreeze, isDeepFrozen, type JsonObject } from '@skein/base'
import { hookError, messageOf } from './to-upp-error.ts'
import { wantsContext } from './tool-context.ts'
import type { SettledCall, ToolBatch } from './tool-executor.ts'
import { snapshot } from './tool-result.ts'
import {
  isDeferred,
  isDenied,
  type ApprovalResult,
  type BeforeCallResult,
  type Deferred,
  type Tool,
  type ToolCall,
  type ToolContext,
  type ToolOutcome,
} from './tool.ts'

export type CallReport =
  | { readonly type: 'start'; readonly call: ToolCall }
  | { readonly type: 'end'; readonly settled: SettledCall }

export interface CallEnvironment {
  readonly batch: ToolBatch
  /** Undefined when the model called something that is no tool. */
  readonly tool: Tool | undefined
  /** Why the schedule does not let it run, if so. */
  readonly refusal: string | undefined
  readonly signal: AbortSignal
  readonly report: (report: CallReport) => void
}

/**
 * The life of one call: hooks, approval, run, hooks. What the tool does wrong becomes an outcome that
 * the model is told; what a hook or the journal does wrong is thrown. After an abort nothing starts.
 */
export async function runToolCall(
  requested: ToolCall,
  environment: CallEnvironment,
): Promise<SettledCall> {
  const { batch, tool, signal } = environment
  const { strategy } = batch
  if (!tool) return finish(requested, unknownTool(requested, batch), environment)
  await strategyHook(batch, 'onToolCall', () =>
    strategy?.onToolCall?.(tool, requested.arguments, requested),
  )
  const refusal = refuse(requested, environment)
  if (refusal) return finish(requested, refusal, environment)
  signal.throwIfAborted()
  const before = await strategyHook(batch, 'onBeforeCall', () =>
    strategy?.onBeforeCall?.(tool, requested.arguments, requested),
  )
  const call = withArguments(requested, before)
  if (!proceeds(before)) return finish(call, skipped(call), environment)
  signal.throwIfAborted()
  const refused = await judge(call, tool, environment)
  signal.throwIfAborted()
  if (refused) return finish(call, refused, environment)
  return execute(call, tool, environment)
}

/** Arguments that were cut off, or a dependency that failed: the tool must not see this call. */
function refuse(call: ToolCall, { refusal }: CallEnvironment): ToolOutcome | undefined {
  if (call.invalidArguments) {
    const { reason } = call.invalidArguments
    const message = `The arguments of "${call.toolName}" are not a complete JSON object (${reason}). The tool did not run; call it again with valid arguments.`
    return { type: 'error', message }
  }
  if (refusal !== undefined)
    return { type: 'error', message: `"${call.toolName}" did not run. ${refusal}` }
  return undefined
}

function unknownTool({ toolName }: ToolCall, { tools }: ToolBatch): ToolOutcome {
  const known = tools.map((tool) => tool.name).join(', ')
  return {
    type: 'error',
    message: `There is no tool "${toolName}". ${known === '' ? 'There are no tools.' : `Known tools: ${known}.`}`,
  }
}

function skipped({ toolName }: ToolCall): ToolOutcome {
  return { type: 'denied', reason: `The call to "${toolName}" was skipped by the application.` }
}

function proceeds(before: BeforeCallResult): boolean {
  return typeof before === 'object' ? before.proceed : before !== false
}

/** From here on these very arguments are judged, journalled and run: frozen, so nobody can swap them. */
function withArguments(call: ToolCall, before: BeforeCallResult): ToolCall {
  const args = (typeof before === 'object' && before.params) || call.arguments
  if (args === call.arguments && isDeepFrozen(call)) return call
  const own = isDeepFrozen(args) ? args : (snapshot(args) as JsonObject) // a plain object stays one
  return deepFreeze({ ...call, arguments: own })
}

/** The outcome that approval decides without a run, if it does. Only `true` lets the call run. */
async function judge(
  call: ToolCall,
  tool: Tool,
  environment: CallEnvironment,
): Promise<ToolOutcome | undefined> {
  if (!tool.approval) return undefined
  let answer: ApprovalResult
  try {
    const context = contextOf(call, environment, environment.signal)
    answer = await tool.approval(call.arguments as never, context as never) // Tool hides its types
  } catch (error) {
    return { type: 'error', message: `Approval failed: ${messageOf(error)}`, cause: error }
  }
  if (isDeferred(answer)) return deferredOutcome(answer)
  if (answer === true) return undefined
  if (isDenied(answer)) return { type: 'denied', reason: answer.reason }
  return { type: 'denied', reason: `The call to "${call.toolName}" was denied.` }
}

function deferredOutcome({ kind, request }: Deferred): ToolOutcome {
  return { type: 'deferred', request: { kind, request } }
}

async function execute(
  call: ToolCall,
  tool: Tool,
  environment: CallEnvironment,
): Promise<SettledCall> {
  const { batch, signal, report } = environment
  await batch.hooks?.onToolCall?.(call)
  await batch.commit?.({ type: 'call_start', call })
  signal.throwIfAborted()
  report({ type: 'start', call })
  const startedAt = batch.clock.now()
  const outcome = await runBounded(call, tool, environment)
  const durationMs = batch.clock.now() - startedAt
  signal.throwIfAborted() // the late result of a tool that did not listen is dropped here
  const settled = { call, outcome: await review(call, outcome, environment), durationMs }
  await batch.commit?.({ type: 'call_end', call, outcome: settled.outcome })
  if (settled.outcome.type === 'deferred') return settled
  await batch.hooks?.onToolResult?.(call, resultOf(settled.outcome), settled.outcome)
  report({ type: 'end', settled })
  return settled
}

/** Ends a call that does not run. It still has a start and an end, so that every answered call has. */
async function finish(
  call: ToolCall,
  outcome: ToolOutcome,
  environment: CallEnvironment,
): Promise<SettledCall> {
  const { batch, report } = environment
  const settled = { call, outcome: await review(call, outcome, environment), durationMs: 0 }
  await batch.commit?.({ type: 'call_end', call, outcome: settled.outcome })
  if (outcome.type === 'deferred') return settled
  report({ type: 'start', call })
  report({ type: 'end', settled })
  return settled
}

async function runBounded(
  call: ToolCall,
  tool: Tool,
  environment: CallEnvironment,
): Promise<ToolOutcome> {
  const { timeoutMs } = tool
  if (timeoutMs === undefined) return runTool(call, tool, environment, environment.signal)
  const controller = new AbortController()
  const signal = AbortSignal.any([environment.signal, controller.signal])
  let timer: ReturnType<typeof setTimeout> | undefined
  const tooLate = new Promise<ToolOutcome>((resolve) => {
    timer = setTimeout(() => {
      const message = `The tool "${call.toolName}" took longer than ${timeoutMs} ms and was stopped.`
      resolve({ type: 'error', message })
      controller.abort(new DOMException(message, 'TimeoutError'))
    }, timeoutMs)
  })
  try {
    return await Promise.race([runTool(call, tool, environment, signal), tooLate])
  } finally {
    clearTimeout(timer)
  }
}

/** Never rejects: an error of the tool is something the model can mend. */
async function runTool(
  call: ToolCall,
  tool: Tool,
  environment: CallEnvironment,
  signal: AbortSignal,
): Promise<ToolOutcome> {
  try {
    const args = call.arguments as never // Tool hides the types of its parameters
    const result = wantsContext(tool)
      ? await tool.run(args, contextOf(call, environment, signal) as never)
      : await (tool.run as (params: never) => unknown).call(tool, args)
    return isDeferred(result) ? deferredOutcome(result) : { type: 'done', result: snapshot(result) }
  } catch (error) {
    return { type: 'error', message: messageOf(error), cause: error }
  }
}

function contextOf(call: ToolCall, { batch }: CallEnvironment, signal: AbortSignal): ToolContext {
  const { toolCallId, toolName } = call
  return { ...batch.context?.(call), signal, toolCallId, toolName }
}

/** The strategy's look at an outcome; `onAfterCall` may replace what the model sees. */
async function review(
  call: ToolCall,
  outcome: ToolOutcome,
  { batch, tool }: CallEnvironment,
): Promise<ToolOutcome> {
  const { strategy } = batch
  if (!strategy || !tool) return outcome
  if (outcome.type === 'error') {
    const error = errorOf(outcome)
    await strategyHook(batch, 'onError', () =>
      strategy.onError?.(tool, call.arguments, error, call),
    )
  }
  if (outcome.type !== 'done') return outcome
  const after = await strategyHook(batch, 'onAfterCall', () =>
    strategy.onAfterCall?.(tool, call.arguments, outcome.result, call),
  )
  return after ? { type: 'done', result: snapshot(after.result) } : outcome
}

function errorOf({ message, cause }: Extract<ToolOutcome, { type: 'error' }>): Error {
  return cause instanceof Error ? cause : new Error(message, { cause })
}

function resultOf(outcome: Exclude<ToolOutcome, { type: 'deferred' }>): unknown {
  if (outcome.type === 'done') return outcome.result
  return outcome.type === 'error' ? outcome.message : outcome.reason
}

async function strategyHook<T>(
  { provider = 'skein' }: ToolBatch,
  name: string,
  call: () => T | Promise<T>,
): Promise<T> {
  try {
    return await call()
  } catch (error) {
    throw hookError(error, `${name} of the tool strategy`, { provider, modality: 'llm' })
  }
}
