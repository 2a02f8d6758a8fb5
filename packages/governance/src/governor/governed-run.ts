import { canonicalJson, deepFreeze, type JsonValue } from '@skein/base'
import { type Admission, admit, admitNative, type CallRequest } from './admit.ts'
import type { ApprovalAnswer, ApprovalRequest } from '../contract/approval.ts'
import { emitChunk } from './chunks.ts'
import type { TaskClass } from '../contract/define-task-class.ts'
import type { Evidence } from '../contract/evidence.ts'
import { execute } from './execute.ts'
import { isNamedCall } from '../journal/state.ts'
import type { GovernedTool } from '../contract/governed.ts'
import { GovernanceError, messageOf, reason, type Reason, refusal } from '../contract/reason.ts'
import { conflict, type GovernedRequest } from './request.ts'
import type { CallOptions, CallResult, Init, Run } from '../contract/run.ts'
import { settle } from './settle.ts'

/** What a run needs from outside to open and drive children. */
export type RunChild = (
  parent: GovernedRequest,
  child: {
    readonly id: string
    readonly task: TaskClass
    readonly init: Partial<Pick<Init, 'identity' | 'input'>>
  },
  body: (run: Run) => Promise<JsonValue>,
  answers: Answers,
) => Promise<{ readonly value: JsonValue } | { readonly waiting: readonly Waiting[] }>

/** An open question and, where tokens were given, why they were of no use. */
export interface Waiting {
  readonly request: ApprovalRequest
  readonly rejected?: Reason
}

/** What people said, given to `resume`. */
export interface Answers {
  readonly tokens: readonly string[]
  readonly denials: ReadonlyMap<string, ApprovalAnswer>
}

/** One pass over a body. When the pass ends, so does every call made through it. */
export class GovernedRun implements Run {
  readonly request_id: string
  readonly trace_id: string
  readonly parent_trace_id: string | undefined
  readonly input: JsonValue
  readonly signal: AbortSignal
  readonly attempt: number
  readonly why: readonly Reason[]
  /** Questions this pass cannot go on without. */
  readonly waiting: Waiting[] = []
  readonly #request: GovernedRequest
  readonly #answers: Answers
  readonly #runChild: RunChild
  readonly #evidence: Evidence[] = []
  #calls = 0
  #steps = 0
  #children = 0
  #isOver = false

  constructor(request: GovernedRequest, input: JsonValue, answers: Answers, runChild: RunChild) {
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

  /** After this, nothing that still holds the run can act through it. */
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
    return this.#start(() => {
      const step = `${this.attempt}.s${++this.#steps}`
      return runStep(this.#request, { step, name }, fn)
    })
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
      // The gate takes what JSON can say and refuses the rest, whatever the type.
      const call = { id, tool: tool.name, args: args as JsonValue }
      return this.#call(tool, call) as Promise<CallResult<Result>>
    })
  }

  child<T extends JsonValue>(
    task: TaskClass,
    init: Partial<Pick<Init, 'identity' | 'input'>>,
    body: (run: Run) => Promise<T>,
  ): Promise<T> {
    return this.#start(() => {
      const id = `${this.attempt}.c${++this.#children}`
      return this.#child({ id, task, init }, body) as Promise<T>
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

  /** Begins at once, so that positions follow the order of calls. The end of the run waits for it. */
  #start<T>(work: () => Promise<T>): Promise<T> {
    return this.#request.track(
      (async () => {
        this.#assertOpen()
        return work()
      })(),
    )
  }

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
    if (admission.type === 'review') throw this.#park(admission)
    const settled = await settle(request, admission.call, await execute(request, admission.call))
    if (settled.type === 'done') return this.#keep(settled)
    throw refusal(call.tool, settled.reasons)
  }

  /** Asks the gate; where a person has to say, asks them too if somebody waits for the answer. */
  async #admit(call: CallRequest): Promise<Admission> {
    const request = this.#request
    const admission = await admit(request, call, this.#answerTo(call.id))
    const { approve } = request.listeners
    if (admission.type !== 'review' || !approve) return admission
    const answer = await stoppable(request, approve(admission.request))
    if (answer.type === 'wait') return admission
    // The snapshot that was shown, whatever became of the caller's object meanwhile.
    const shown = { ...call, args: admission.request.action.args }
    return admit(request, shown, { ...answer, isFinal: true })
  }

  #answerTo(call: string): ApprovalAnswer | undefined {
    const review = this.#request.state.reviews.get(call)
    if (!review) return undefined
    const { tokens, denials } = this.#answers
    return (
      denials.get(review.review) ?? (tokens.length > 0 ? { type: 'approve', tokens } : undefined)
    )
  }

  #park({ request, rejected }: Admission & { readonly type: 'review' }): GovernanceError {
    const waiting = { request, ...(rejected && { rejected }) }
    this.waiting.push(waiting)
    return parked(request.action.tool, waiting)
  }

  async #child(
    child: {
      readonly id: string
      readonly task: TaskClass
      readonly init: Partial<Pick<Init, 'identity' | 'input'>>
    },
    body: (run: Run) => Promise<JsonValue>,
  ): Promise<JsonValue> {
    const ended = await this.#runChild(this.#request, child, body, this.#answers)
    if ('value' in ended) return ended.value
    this.waiting.push(...ended.waiting)
    throw parked(child.task.name, ended.waiting[0] as Waiting)
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

async function runStep<T extends JsonValue>(
  request: GovernedRequest,
  { step, name }: { readonly step: string; readonly name: string },
  fn: () => T | Promise<T>,
): Promise<T> {
  const known = request.state.steps.get(step)
  if (known) {
    if (known.name !== name) throw conflict(request, `step ${step} was "${known.name}" before`)
    const value = await request.fetch(known.hash)
    if (!known.ok) throw stepFailed(name, String(value))
    return value as T
  }
  try {
    const text = canonicalJson((await fn()) ?? null)
    await recordStep(request, { step, name }, text, true)
    return deepFreeze(JSON.parse(text) as T)
  } catch (error) {
    if (request.broken) throw request.broken
    const { detail = '' } = reason('RUN_ERROR', name, messageOf(error))
    await recordStep(request, { step, name }, canonicalJson(detail), false)
    // The same error as a replay would throw: live and replay must take the same way.
    throw stepFailed(name, detail, error)
  }
}

async function recordStep(
  request: GovernedRequest,
  step: { readonly step: string; readonly name: string },
  text: string,
  ok: boolean,
): Promise<void> {
  const hash = await request.keep(text)
  await request.submit(
    { type: 'step', data: { ...step, hash } },
    { outcome: ok ? 'success' : 'failure', actor: request.agent },
  )
}

function stepFailed(name: string, message: string, cause?: unknown): GovernanceError {
  return new GovernanceError(
    `The step "${name}" failed: ${message}`,
    [reason('RUN_ERROR', name, message)],
    { cause },
  )
}

/** Waits for people no longer than the run lasts. */
function stoppable<T>({ controller: { signal } }: GovernedRequest, work: Promise<T>): Promise<T> {
  return new Promise((resolve, reject) => {
    const stop = (): void => reject(signal.reason as Error)
    if (signal.aborted) return stop()
    signal.addEventListener('abort', stop, { once: true })
    work.then(resolve, reject).finally(() => signal.removeEventListener('abort', stop))
  })
}

/** What a call throws that has to wait for people; `detail` is the id of the question. */
function parked(name: string, { request }: Waiting): GovernanceError {
  return new GovernanceError(
    `"${name}" waits for approval.`,
    [reason('APPROVAL_REQUIRED', name, request.id)],
    { hint: 'Let this error pass: the run ends pending, and resume() goes on from here.' },
  )
}
