import { canonicalJson, deepFreeze, type JsonValue } from '@skein/base'
import type { ApprovalAnswer, ApprovalRequest } from '../contract/approval.ts'
import type { GovernedTool, TaskClass } from '../contract/governed.ts'
import type { Evidence } from '../contract/evidence.ts'
import { GovernanceError, thrownText, reason, type Reason, refusal } from '../contract/reason.ts'
import type { CallOptions, CallResult, Init, Pending, Run } from '../contract/run.ts'
import { isNamedCall } from '../journal/reduce.ts'
import { type Admission, admit, admitNative, type CallRequest } from './admit.ts'
import { emitChunk, execute, settle } from './execute.ts'
import { conflict, type GovernedRequest } from './request.ts'

/** A child run that a body starts with `run.child`. */
export interface Child {
  readonly id: string
  readonly task: TaskClass
  readonly init: Partial<Pick<Init, 'identity' | 'input'>>
  readonly body: (run: Run) => Promise<JsonValue>
}

/**
 * The function that opens and drives a child. `drive` passes it in, because importing it from `drive.ts`
 * would make the two modules import each other.
 */
export type RunChild = (
  parent: GovernedRequest,
  child: Child,
  answers: ApprovalAnswers,
) => Promise<{ readonly value: JsonValue } | Pick<Pending, 'waiting' | 'rejected'>>

/** The answers of people: tokens, and denials by the id of the approval request. */
export interface ApprovalAnswers {
  readonly tokens: readonly string[]
  readonly denials: ReadonlyMap<string, ApprovalAnswer>
}

/**
 * The `run` object that a body gets for one pass, that is, one execution of the body. Its methods throw
 * once the pass has ended.
 */
export class GovernedRun implements Run {
  readonly request_id: string
  readonly trace_id: string
  readonly parent_trace_id: string | undefined
  readonly input: JsonValue
  readonly signal: AbortSignal
  readonly attempt: number
  readonly why: readonly Reason[]
  /** The approval requests that this pass waits for, of its own calls and of its children. */
  readonly waiting: ApprovalRequest[] = []
  /** Why tokens were not accepted. Not every request in `waiting` has a rejection. */
  readonly rejected: Reason[] = []
  readonly #request: GovernedRequest
  readonly #answers: ApprovalAnswers
  readonly #runChild: RunChild
  readonly #evidence: Evidence[] = []
  #calls = 0
  #steps = 0
  #children = 0
  #isOver = false

  constructor(
    request: GovernedRequest,
    input: JsonValue,
    answers: ApprovalAnswers,
    runChild: RunChild,
  ) {
    const { state } = request
    this.request_id = state.request_id
    this.trace_id = state.trace_id
    this.parent_trace_id = state.parent_trace_id
    this.input = input
    this.signal = request.controller.signal
    this.attempt = state.attempt
    this.why = state.why
    this.#request = request
    this.#answers = answers
    this.#runChild = runChild
  }

  get evidence(): readonly Evidence[] {
    return Object.freeze([...this.#evidence])
  }

  /** Ends the pass: from now on the methods of this object throw, even for code that still holds it. */
  end(): void {
    this.#isOver = true
  }

  async plan(proposal: JsonValue): Promise<void> {
    this.#assertOpen()
    const request = this.#request
    const hash = await request.keep(canonicalJson(proposal))
    await request.submit(
      { type: 'planned', data: { hash } },
      { outcome: 'success', actor: request.agent },
    )
  }

  step<T extends JsonValue>(name: string, fn: () => T | Promise<T>): Promise<T> {
    return this.#start(() => this.#step(`${this.attempt}.s${++this.#steps}`, name, fn))
  }

  call<Args, Result>(
    tool: GovernedTool<Args, Result>,
    args: Args,
    options: CallOptions = {},
  ): Promise<CallResult<Result>> {
    return this.#start(() => {
      if (options.id !== undefined && !isNamedCall(options.id)) {
        throw conflict(this.#request, `the call id ${options.id} looks like a position`)
      }
      const id = options.id ?? `${this.attempt}.${++this.#calls}`
      // The cast needs no check here, because `admit` refuses arguments that are not JSON.
      const call = { id, tool: tool.name, args: args as JsonValue }
      return this.#call(tool, call) as Promise<CallResult<Result>>
    })
  }

  child<T extends JsonValue>(
    task: TaskClass,
    init: Partial<Pick<Init, 'identity' | 'input'>>,
    body: (run: Run) => Promise<T>,
  ): Promise<T> {
    return this.#start(async () => {
      const id = `${this.attempt}.c${++this.#children}`
      const ended = await this.#runChild(this.#request, { id, task, init, body }, this.#answers)
      // The cast is safe: the value is what the child's body, which returns `T`, delivered.
      if ('value' in ended) return ended.value as T
      this.waiting.push(...ended.waiting)
      this.rejected.push(...(ended.rejected ?? []))
      throw parked(task.name, ended.waiting[0] as ApprovalRequest)
    })
  }

  chunk(text: string): void {
    this.#assertOpen()
    emitChunk(this.#request, text)
  }

  async native(tool: string): Promise<void> {
    this.#assertOpen()
    await admitNative(this.#request, tool)
  }

  /**
   * Starts `work` synchronously, so that calls, steps and children are numbered in the order in which the
   * body starts them, and makes the run wait until `work` has ended.
   */
  #start<T>(work: () => Promise<T>): Promise<T> {
    return this.#request.track(
      (async () => {
        this.#assertOpen()
        return work()
      })(),
    )
  }

  /** Takes one call through all its stages: admit, execute, settle. */
  async #call(tool: GovernedTool<never, unknown>, call: CallRequest): Promise<CallResult<unknown>> {
    const request = this.#request
    if (request.task.tools.every((known) => known !== tool)) {
      throw refusal(call.tool, [
        reason('TOOL_UNKNOWN', call.tool, 'it is none of the task’s tools'),
      ])
    }
    const admission = await this.#admit(call)
    if (admission.type === 'replay') return this.#keep(admission)
    if (admission.type === 'deny') throw refusal(call.tool, admission.reasons)
    if (admission.type === 'review') {
      this.waiting.push(admission.request)
      if (admission.rejected) this.rejected.push(admission.rejected)
      throw parked(call.tool, admission.request)
    }
    const settled = await settle(request, admission.call, await execute(request, admission.call))
    if (settled.type === 'done') return this.#keep(settled)
    throw refusal(call.tool, settled.reasons)
  }

  /**
   * Asks whether the call may run. If a person has to approve and the caller passed `approve`, waits for
   * the answer.
   */
  async #admit(call: CallRequest): Promise<Admission> {
    const request = this.#request
    const asked = request.state.reviews.get(call.id)
    const admission = await admit(request, call, asked && this.#answerTo(asked.review))
    const { approve } = request.listeners
    if (admission.type !== 'review' || !approve) return admission
    const answer = await untilStopped(request, approve(admission.request))
    if (answer.type === 'wait') return admission
    // The call is made with the arguments that the person was shown, even if the caller has changed its
    // own object since.
    const shown = { ...call, args: admission.request.action.args }
    return admit(request, shown, { ...answer, isFinal: true })
  }

  #answerTo(review: string): ApprovalAnswer | undefined {
    const { tokens, denials } = this.#answers
    return denials.get(review) ?? (tokens.length > 0 ? { type: 'approve', tokens } : undefined)
  }

  /**
   * Runs `fn` and records its value or error; in a later pass, returns the recorded value or throws the
   * recorded error.
   */
  async #step<T extends JsonValue>(
    step: string,
    name: string,
    fn: () => T | Promise<T>,
  ): Promise<T> {
    const request = this.#request
    const known = request.state.steps.get(step)
    if (known) {
      if (known.name !== name) throw conflict(request, `step ${step} was "${known.name}" before`)
      const value = await request.fetch(known.hash)
      if (!known.ok) throw stepFailed(name, String(value))
      return value as T
    }
    const record = async (text: string, outcome: 'success' | 'failure'): Promise<void> => {
      const hash = await request.keep(text)
      const data = { step, name, hash }
      await request.submit({ type: 'step', data }, { outcome, actor: request.agent })
    }
    try {
      const text = canonicalJson((await fn()) ?? null)
      await record(text, 'success')
      return deepFreeze(JSON.parse(text) as T)
    } catch (error) {
      if (request.broken) throw request.broken
      const { detail = '' } = reason('RUN_ERROR', name, thrownText(error))
      await record(canonicalJson(detail), 'failure')
      // A later pass throws exactly this error from the record, so the body behaves the same in both
      // passes.
      throw stepFailed(name, detail, error)
    }
  }

  #keep<T extends { readonly result: JsonValue; readonly evidence: Evidence }>({
    result,
    evidence,
  }: T): CallResult<unknown> {
    this.#evidence.push(evidence)
    return { result, evidence }
  }

  #assertOpen(): void {
    if (this.#isOver) throw conflict(this.#request, 'this pass over its body has ended')
    if (this.#request.broken) throw this.#request.broken
    if (this.#request.stopped) {
      throw new GovernanceError('The run was stopped.', [this.#request.stopped])
    }
  }
}

function stepFailed(name: string, message: string, cause?: unknown): GovernanceError {
  return new GovernanceError(
    `The step "${name}" failed: ${message}`,
    [reason('RUN_ERROR', name, message)],
    { cause },
  )
}

/** Waits for `work`, the answer of a person, but rejects as soon as the run is stopped. */
function untilStopped<T>({ controller }: GovernedRequest, work: Promise<T>): Promise<T> {
  const { signal } = controller
  return new Promise((resolve, reject) => {
    const stop = (): void => reject(signal.reason as Error)
    if (signal.aborted) return stop()
    signal.addEventListener('abort', stop, { once: true })
    work.then(resolve, reject).finally(() => signal.removeEventListener('abort', stop))
  })
}

/**
 * Creates the error of a call that waits for approval. The reason's `detail` is the id of the approval
 * request.
 */
function parked(name: string, { id }: ApprovalRequest): GovernanceError {
  return new GovernanceError(
    `"${name}" waits for approval.`,
    [reason('APPROVAL_REQUIRED', name, id)],
    { hint: 'Let this error pass: the run ends pending, and resume() goes on from here.' },
  )
}
