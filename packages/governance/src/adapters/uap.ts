import type { JsonValue } from '@skein/base'
import type { TaskClass } from '../contract/governed.ts'
import type { Governor } from '../governor.ts'
import { GovernanceError, reason, type Reason } from '../contract/reason.ts'
import type { Init, Result, Run, Resume } from '../contract/run.ts'
import type { CallingRun } from './call-through.ts'
import {
  EventGate,
  GovernedStream,
  type UapContext,
  type UapInterrupt,
  type UapResult,
  type UapState,
  type UapStrategy,
} from './uap-stream.ts'
import { type UppTool, uppTools } from './upp-tools.ts'

/** Options of `governedExecution`. */
interface GovernedExecutionOptions<Context> {
  readonly governor: Governor
  /**
   * Returns the identity and input of the request, and optional callbacks. When a call is resumed, only the
   * callbacks (`approve` and `onChunk`) are used.
   */
  readonly init: (context: Context) => Omit<Init, 'signal'>
  /**
   * Holds all events back until the call is delivered. Otherwise they are emitted immediately with
   * `unverified: true`.
   */
  readonly hold?: boolean
}

/**
 * The error that is thrown when a call of an agent ends without delivery. The agent's own error has it as
 * `cause`.
 */
export class NotDeliveredError extends GovernanceError {
  /**
   * The result of the request: it ended without delivery (with reasons and undo status), is still waiting, or
   * was delivered before.
   */
  readonly result: Result<JsonValue>

  constructor(message: string, why: readonly Reason[], result: Result<JsonValue>, cause: unknown) {
    const [first = reason('RUN_ERROR'), ...rest] = why
    super(message, [first, ...rest], { cause })
    this.result = result
  }
}

/**
 * Wraps a strategy so that each run of an agent is one governed request. The agent's tools are replaced by
 * the task's tools with the same names; a tool that the task does not have is refused. The turn's data or,
 * without data, its text is the candidate: the value that is verified and, if it passes, delivered.
 *
 *     agent({ model, tools: task.tools, execution: governedExecution(task, loop(), { governor, init }) })
 *
 * On delivery it returns the strategy's result, with the receipt in the state's metadata under `uaicp`. If
 * the request ends without delivery (fails safe), it throws a `NotDeliveredError`, and the checkpoint is set
 * back to the state before the call. While the request waits for approval, the result has one interrupt per
 * approval request; `agent.resume` accepts `{ type: 'approve', token }` or a denial, and after any other
 * answer the request keeps waiting. The application's hooks and checkpoints see a step before it has been
 * verified.
 */
export function governedExecution<Strategy extends UapStrategy>(
  task: TaskClass,
  inner: Strategy,
  options: GovernedExecutionOptions<Parameters<Strategy['execute']>[0]>,
): Strategy {
  // The cast drops the strategy's own types, because only a part of their members is used here.
  const common = { task, options: options as unknown as GovernedExecutionOptions<UapContext> }
  const strategy = {
    name: `governed ${inner.name}`,
    execute: (context: UapContext) =>
      govern({
        ...common,
        context,
        ask: (given) => inner.execute(given as never),
        onEnd: () => {},
        signal: context.signal,
      }),
    stream: (context: UapContext) =>
      new GovernedStream((emit, signal) => {
        const gate = new EventGate(emit, context, options.hold === true)
        return govern({
          ...common,
          context,
          ask: (given) => gate.read(inner, given),
          onEnd: (result) => gate.end(result),
          signal: context.signal ? AbortSignal.any([context.signal, signal]) : signal,
        })
      }),
  }
  return Object.freeze(strategy) as unknown as Strategy
}

interface GovernedCall {
  readonly task: TaskClass
  readonly options: GovernedExecutionOptions<UapContext>
  readonly context: UapContext
  readonly signal: AbortSignal | undefined
  /** Runs the inner strategy. */
  readonly ask: (context: UapContext & { readonly signal: AbortSignal }) => Promise<UapResult>
  /** Called with the result of the request, before the caller gets it. */
  readonly onEnd: (result: Result<JsonValue>) => void
}

async function govern(call: GovernedCall): Promise<UapResult> {
  checkTools(call)
  const answers = readAnswers(call.context)
  const asked: { result?: UapResult | undefined; error?: unknown } = {}
  const result = await begin(call, answers, async (run) => {
    asked.result = undefined
    try {
      const given = await askOnce(call, run)
      asked.result = given
      return (given.turn.data ?? given.turn.response.text) as JsonValue // `deliver` refuses what is not JSON.
    } catch (error) {
      asked.error = error
      throw error
    }
  })
  call.onEnd(result)
  return conclude(call, result, asked)
}

/** Runs the inner strategy once, with the tools of this run instead of its own. */
async function askOnce({ task, context, ask }: GovernedCall, run: Run): Promise<UapResult> {
  const parkedIds = new Set<unknown>()
  const calling: CallingRun = {
    call: (tool, args, options) =>
      run.call(tool, args, options).catch((error: unknown) => {
        if (error instanceof GovernanceError && error.code === 'APPROVAL_REQUIRED')
          parkedIds.add(error.reasons[0]?.detail)
        throw error
      }),
  }
  const names = new Set(context.tools.map(({ name }) => name))
  const tools: readonly UppTool[] = uppTools(
    calling,
    task.tools.filter(({ name }) => names.has(name)),
  )
  const { signal } = run
  // Every waiting call is made again, whatever its answer is, because the governor checks the tokens and
  // denials.
  const deferred = context.state.suspension?.deferred ?? []
  const again = deferred.map(({ toolCallId }) => [toolCallId, { type: 'approve' }] as const)
  const result = await ask({
    ...context,
    tools,
    signal,
    llm: context.llm.with({ tools, signal }) as UapContext['llm'],
    // The request id is stored in every checkpoint, so that a restored state continues the same request.
    state: marked(context.state, { request_id: run.request_id }),
    resume: context.resume && { answers: Object.fromEntries(again) },
  })
  const other = result.interrupts?.find(({ request }) => !parkedIds.has(request))
  if (other)
    throw new GovernanceError(`The call "${other.id}" waits for something else than approval.`, [
      reason('STATE_CONFLICT', other.id, 'a governed call waits only for approval'),
    ])
  return result
}

function begin(
  { task, options, context, signal }: GovernedCall,
  answers: Resume,
  body: (run: Run) => Promise<JsonValue>,
): Promise<Result<JsonValue>> {
  const init = options.init(context)
  const previousRequest =
    context.resume && (context.state.metadata['uaicp'] as { request_id?: unknown })
  if (typeof previousRequest?.request_id !== 'string')
    return options.governor.run(task, { ...init, signal }, body)
  const { approve, onChunk } = init
  const resume = { ...answers, approve, onChunk, signal }
  return options.governor.resume(previousRequest.request_id, task, body, resume)
}

async function conclude(
  { context }: GovernedCall,
  result: Result<JsonValue>,
  asked: { readonly result?: UapResult | undefined; readonly error?: unknown },
): Promise<UapResult> {
  if (result.outcome === 'uncertain') {
    const { request_id } = result.receipt
    await context.checkpoint?.(marked(context.state, { request_id, state: result.state }))
    const message = `The request ${request_id} failed safe; nothing was delivered.`
    throw new NotDeliveredError(message, result.reasons, result, asked.error)
  }
  const given = asked.result
  if (!given) throw withoutTurn(result, asked.error)
  const isPending = result.outcome === 'pending'
  const state = isPending
    ? marked(given.state, { request_id: result.request_id })
    : marked(given.state, { ...result.receipt, state: result.state })
  await context.checkpoint?.(state)
  return Object.freeze({ ...given, state, ...(isPending && waitingFor(result, given)) })
}

/**
 * Returns the interrupts of a call that waits, each with the complete approval request that a person has
 * to sign.
 */
function waitingFor(
  { waiting }: Extract<Result<JsonValue>, { outcome: 'pending' }>,
  { interrupts = [] }: UapResult,
): Pick<UapResult, 'interrupts' | 'stopReason'> {
  const asked = waiting.map((request): UapInterrupt => {
    const { call_id } = request.action
    const place = interrupts.find((interrupt) => interrupt.request === request.id)
    return { id: call_id, toolCallId: call_id, path: [], ...place, kind: 'approval', request }
  })
  return { interrupts: asked, stopReason: 'interrupted' }
}

/**
 * Creates the error for a call without a turn: either the request had already ended, or the strategy
 * failed while a call waits.
 */
function withoutTurn(result: Result<JsonValue>, error: unknown): NotDeliveredError {
  if (result.outcome === 'pending') {
    const why = result.waiting.map(({ id, action }) => reason('APPROVAL_REQUIRED', action.tool, id))
    return new NotDeliveredError('The strategy failed while a call waits.', why, result, error)
  }
  const why = [reason('STATE_CONFLICT', undefined, 'the request was delivered before')]
  return new NotDeliveredError('This state was resumed before.', why, result, error)
}

/**
 * Throws if the agent has a tool that the task does not govern, because no policy would check its calls.
 */
function checkTools({ task, context }: GovernedCall): void {
  const other = context.tools.find(({ name }) => task.tools.every((tool) => tool.name !== name))
  if (!other) return
  throw new GovernanceError(
    `The agent's tool "${other.name}" is none of the task "${task.name}".`,
    [reason('TOOL_UNGOVERNED', other.name)],
    { hint: 'Wrap it with governed() and list it in defineTaskClass({ tools }).' },
  )
}

/**
 * Converts the answers of a resumed call into tokens and denials. Throws for an answer to a call that
 * does not wait.
 */
function readAnswers({ state, resume }: UapContext): Resume {
  const deferred = state.suspension?.deferred ?? []
  const tokens: string[] = []
  const denials: { id: string; reason: string }[] = []
  for (const [name, answer] of Object.entries(resume?.answers ?? {})) {
    const call = deferred.find(({ toolCallId }) => toolCallId === name)
    if (!call)
      throw new GovernanceError(`No call "${name}" waits for an answer.`, [
        reason('STATE_CONFLICT', name),
      ])
    if (answer.type === 'approve' && answer.token !== undefined) tokens.push(answer.token)
    if (answer.type === 'deny')
      denials.push({ id: String(call.request.request), reason: answer.reason ?? '' })
  }
  return { tokens, denials }
}

function marked(state: UapState, mark: object): UapState {
  return state.withMetadata('uaicp', JSON.parse(JSON.stringify(mark)) as JsonValue)
}
