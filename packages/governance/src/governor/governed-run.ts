import { canonicalJson, type JsonValue } from '@skein/base'
import type { ApprovalAnswer, ApprovalRequest } from '../contract/approval.ts'
import { parseFrozen } from '../contract/envelope.ts'
import type { GovernedTool, TaskClass } from '../contract/governed.ts'
import type { Evidence } from '../contract/evidence.ts'
import { GovernanceError, thrownText, reason, type Reason, refusal } from '../contract/reason.ts'
import type { CallOptions, CallResult, Init, Run } from '../contract/run.ts'
import { isNamedCall } from '../journal/governor-state.ts'
import { type Admission, admit } from './admit.ts'
import type { CallRequest } from './candidate.ts'
import { admitNative } from './admit-native.ts'
import { emitChunk } from './stream-chunks.ts'
import { execute } from './execute.ts'
import { settle } from './settle.ts'
import { conflict, type GovernedRequest, untilStopped } from './request.ts'
import type { RunChild } from './drive.ts'

/** An open approval request and, if tokens were given, why they were not accepted. */
export interface Waiting {
  readonly request: ApprovalRequest
  readonly rejected?: Reason
}

/** The answers of people: tokens, and denials by the id of the approval request. */
export interface ApprovalAnswers {
  readonly tokens: readonly string[]
  readonly denials: ReadonlyMap<string, ApprovalAnswer>
}

/**
 * The `run` object that a body gets for one pass, that is, one execution of the body. Its methods throw
 * once the pass has ended.
 *
 * A pass also ends when a call waits for a person and nothing else of the pass is in progress. Only then
 * does the waiting call throw, so a framework that shows the error to its model and continues finds a pass
 * that has ended: it can neither record an answer made from that error nor make another call. Calls that
 * the body made at the same time still run, and all that wait are asked for together.
 */
export class GovernedRun implements Run {
  readonly request_id: string
  readonly trace_id: string
  readonly parent_trace_id: string | undefined
  readonly input: JsonValue
  readonly signal: AbortSignal
  readonly attempt: number
  readonly why: readonly Reason[]
  /** The approval requests that this execution of the body waits for. */
  readonly waiting: Waiting[] = []
  readonly #request: GovernedRequest
  readonly #answers: ApprovalAnswers
  readonly #runChild: RunChild
  readonly #evidence: Evidence[] = []
  #calls = 0
  #steps = 0
  #children = 0
  /** How many calls, steps and children are in progress and do not wait for a person. */
  #active = 0
  #isOver = false
  /** The error of the first call that waits; set once it has ended this execution of the body. */
  #parked: GovernanceError | undefined
  /** Functions that let the waiting calls throw, once this execution of the body has ended. */
  readonly #held: (() => void)[] = []

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

  /** Ends this execution of the body: from now on the methods of this object throw. */
  end(): void {
    this.#isOver = true
    for (const release of this.#held.splice(0)) release()
  }

  async plan(proposal: JsonValue): Promise<void> {
    this.#assertOpen()
    const request = this.#request
    const hash = await request.keep(canonicalJson(proposal))
    const by = { outcome: 'success', actor: request.agent } as const
    await request.submit({ type: 'planned', data: { hash } }, by)
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
      const call = { id, tool: tool.name, args: args as JsonValue, given: tool }
      return this.#call(call) as Promise<CallResult<Result>>
    })
  }

  child<T extends JsonValue>(
    task: TaskClass,
    init: Partial<Pick<Init, 'identity' | 'input'>>,
    body: (run: Run) => Promise<T>,
  ): Promise<T> {
    return this.#start(async () => {
      const id = `${this.attempt}.c${++this.#children}`
      const end = await this.#runChild(this.#request, { id, task, init, body }, this.#answers)
      // The cast is safe: the child's body returns `T`, and this is the value that was delivered.
      if ('value' in end) return end.value as T
      return this.#park(task.name, end.waiting)
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
        this.#active += 1
        try {
          return await work()
        } finally {
          this.#active -= 1
          this.#endIfParked()
        }
      })(),
    )
  }

  /** Waits until this execution of the body has ended, then throws the error of a call that waits for a person. */
  async #park(name: string, waiting: readonly Waiting[]): Promise<never> {
    this.waiting.push(...waiting)
    const error = parked(name, waiting[0] as Waiting)
    this.#active -= 1
    this.#endIfParked()
    if (!this.#isOver) await new Promise<void>((release) => this.#held.push(release))
    this.#active += 1
    throw error
  }

  /**
   * Ends this execution of the body if all that it still does is wait for people. Frameworks start the calls
   * of one message one after the other within a task of the event loop, so the decision is made in a later
   * task.
   */
  #endIfParked(): void {
    const isParked = (): boolean => this.#active === 0 && this.waiting.length > 0 && !this.#isOver
    if (!isParked()) return
    setTimeout(() => {
      const [first] = this.waiting
      if (!first || !isParked()) return
      this.#parked = parked(first.request.action.tool, first)
      this.end()
    }, 0)
  }

  /** Makes one call: asks whether it may run, runs its tool and records the outcome. */
  async #call(call: CallRequest): Promise<CallResult<unknown>> {
    const request = this.#request
    const admission = await this.#admit(call)
    if (admission.type === 'replay') return this.#keep(admission)
    if (admission.type === 'deny') throw refusal(call.tool, admission.reasons, admission.text)
    if (admission.type === 'review') {
      const { request: asked, rejected } = admission
      return this.#park(call.tool, [{ request: asked, rejected }])
    }
    const settlement = await settle(request, admission.call, await execute(request, admission.call))
    if (settlement.type === 'done') return this.#keep(settlement)
    throw refusal(call.tool, settlement.reasons)
  }

  /**
   * Asks whether the call may run. If a person has to approve and the caller passed `approve`, waits for
   * the answer.
   */
  async #admit(call: CallRequest): Promise<Admission> {
    const request = this.#request
    const review = request.state.reviews.get(call.id)
    const { approve } = request.listeners
    const admission = await admit(request, call, review && this.#answerTo(review.review))
    if (!approve || admission.type !== 'review') return admission
    const answer = await untilStopped(request, approve(admission.request))
    if (answer.type === 'wait') return admission
    // The call is made with the arguments that the person was shown, even if the caller has changed its
    // own object since.
    const reviewedCall = {
      ...call,
      args: admission.request.action.args,
      sent: call.sent ?? call.args,
    }
    return admit(request, reviewedCall, { ...answer, isFinal: true })
  }

  #answerTo(review: string): ApprovalAnswer | undefined {
    const { tokens, denials } = this.#answers
    return denials.get(review) ?? (tokens.length > 0 ? { type: 'approve', tokens } : undefined)
  }

  /**
   * Runs `fn` and records its value or error. When the body runs again, returns the recorded value or throws
   * the recorded error.
   */
  async #step<T extends JsonValue>(
    step: string,
    name: string,
    fn: () => T | Promise<T>,
  ): Promise<T> {
    const request = this.#request
    const previous = request.state.steps.get(step)
    if (previous) {
      if (previous.name !== name)
        throw conflict(request, `step ${step} was "${previous.name}" before`)
      const value = await request.fetch(previous.hash)
      if (!previous.ok) throw stepFailed(name, String(value))
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
      return parseFrozen<T>(text)
    } catch (error) {
      if (request.broken) throw request.broken
      const { detail = '' } = reason('RUN_ERROR', name, thrownText(error))
      await record(canonicalJson(detail), 'failure')
      // When the body runs again, the record makes it throw exactly this error, so the body behaves the same.
      throw stepFailed(name, detail, error)
    }
  }

  #keep({ result, evidence }: CallResult<unknown>): CallResult<unknown> {
    this.#evidence.push(evidence)
    return { result, evidence }
  }

  #assertOpen(): void {
    if (this.#parked) throw this.#parked
    if (this.#isOver) throw conflict(this.#request, 'this pass over its body has ended')
    if (this.#request.broken) throw this.#request.broken
    this.signal.throwIfAborted()
  }
}

function stepFailed(name: string, message: string, cause?: unknown): GovernanceError {
  const why = reason('RUN_ERROR', name, message)
  return new GovernanceError(`The step "${name}" failed: ${message}`, [why], { cause })
}

/** Creates the error of a call that waits for approval. Its reason's `detail` is the id of the request. */
function parked(name: string, { request }: Waiting): GovernanceError {
  return new GovernanceError(
    `"${name}" waits for approval.`,
    [reason('APPROVAL_REQUIRED', name, request.id)],
    { hint: 'Let this error pass: the run ends pending, and resume() continues from here.' },
  )
}
