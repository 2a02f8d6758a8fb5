import type { JsonValue } from '@skein/base'
import { type Admission, admit, type CallRequest } from './governor/admit.ts'
import type { ApprovalAnswer } from './contract/approval.ts'
import type { TaskClass } from './contract/define-task-class.ts'
import { deliver, type Delivery, failAttempt } from './governor/deliver.ts'
import { type Body, drive } from './governor/drive.ts'
import type { Actor } from './contract/envelope.ts'
import { brokenResult, failSafe } from './governor/fail.ts'
import type { Answers } from './governor/governed-run.ts'
import { type GovernorCore, type GovernorOptions, resolveOptions } from './governor/options.ts'
import { type GovernorState, isClosed, isInDoubt } from './journal/state.ts'
import { openRequest, type OpenRequest } from './governor/open.ts'
import { GovernanceError, reason, type Reason } from './contract/reason.ts'
import {
  record,
  recoverAll,
  type Recovered,
  recoverRequest,
  settleDoubt,
} from './governor/recover.ts'
import { type AdmittedCall, conflict, GovernedRequest, loadState } from './governor/request.ts'
import { toAdmitted } from './governor/undo.ts'
import type { Delivered, FailedSafe, Init, Result, Run } from './contract/run.ts'
import { closedResult, ownersOf, reviveRequest } from './governor/revive.ts'
import { type CallOutcome, settle, type Settlement } from './governor/settle.ts'

/** What `resume` is given: what people said, and who listens now. */
export interface Resume extends Pick<Init, 'approve' | 'onChunk' | 'signal'> {
  /** Approval tokens; each finds its own request. */
  readonly tokens?: readonly string[]
  readonly denials?: readonly Denial[]
}

export interface Denial {
  /** Id of the approval request. */
  readonly id: string
  readonly reason: string
  readonly by?: Actor
}

/** The answer to `open`. */
export type Opening =
  | { readonly type: 'opened'; readonly request_id: string; readonly trace_id: string }
  | { readonly type: 'fail_safe'; readonly result: FailedSafe }

/**
 * Owns state and transitions of governed requests. `run` is for bodies of code; the stepwise calls
 * (`open`, `admit`, `settle`, `deliver`) are for runtimes with a loop of their own. Both are the same
 * machine, and both can go on in another process: everything they know is in the journal.
 */
export interface Governor {
  readonly id: string
  run<T extends JsonValue>(
    task: TaskClass,
    init: Init,
    body: (run: Run) => Promise<T>,
  ): Promise<Result<T>>
  resume<T extends JsonValue>(
    requestId: string,
    task: TaskClass,
    body: (run: Run) => Promise<T>,
    options?: Resume,
  ): Promise<Result<T>>
  /** Settles what a crash left open. Call it once at start-up. */
  recover(): Promise<readonly Recovered[]>
  /** Ends a request that nobody goes on with: fails it safe and inverts its writes. */
  cancel(requestId: string, why?: Reason): Promise<FailedSafe | Delivered<JsonValue>>

  open(task: TaskClass, request: OpenRequest): Promise<Opening>
  admit(requestId: string, call: CallRequest, answer?: ApprovalAnswer): Promise<Admission>
  settle(requestId: string, call: string, outcome: CallOutcome): Promise<Settlement>
  deliver(requestId: string, candidate: JsonValue): Promise<Delivery>
  /** Ends an attempt without a candidate. */
  fail(requestId: string, reasons: readonly Reason[]): Promise<Delivery>
  /**
   * Settles one call that was running when its process died, as `recover` does for all of them: `absent`
   * may be admitted again. Undefined: nothing of it is in doubt.
   */
  recoverCall(
    requestId: string,
    call: string,
  ): Promise<'applied' | 'absent' | 'in_doubt' | undefined>
  /** A person says what became of an effect in doubt. */
  settleInDoubt(requestId: string, call: string, found: 'applied' | 'absent'): Promise<void>
  /** The fold of a request's journal; undefined when there is none. */
  state(requestId: string): Promise<GovernorState | undefined>
}

/** Makes a governor. Nothing runs until `run`, `resume`, `recover` or `open`. */
export function governor(options: GovernorOptions): Governor {
  return new JournalGovernor(resolveOptions(options))
}

class JournalGovernor implements Governor {
  readonly #core: GovernorCore
  /** Requests this process works on: a second worker on the same one is a conflict. */
  readonly #live = new Map<string, GovernedRequest>()
  /** Resolve when `run` or `resume` are through with a request. */
  readonly #work = new Map<string, Promise<void>>()

  constructor(core: GovernorCore) {
    this.#core = core
  }

  get id(): string {
    return this.#core.id
  }

  async run<T extends JsonValue>(
    task: TaskClass,
    init: Init,
    body: (run: Run) => Promise<T>,
  ): Promise<Result<T>> {
    const { request, refused } = await openRequest(this.#core, task, init)
    if (request.broken) return brokenResult(request)
    if (refused.length > 0) {
      return failSafe(request, { reasons: refused, missing: [] }, ownersOf(request))
    }
    return this.#begin(request, () => drive(request, body, init)) as Promise<Result<T>>
  }

  async resume<T extends JsonValue>(
    requestId: string,
    task: TaskClass,
    body: (run: Run) => Promise<T>,
    options: Resume = {},
  ): Promise<Result<T>> {
    const request = await this.#take(requestId, task)
    const resumed = this.#begin(request, async () => {
      if (!isClosed(request.state)) await recoverRequest(request)
      if (isClosed(request.state)) return closedResult(request)
      return drive(request, body as Body, { ...options, answers: toAnswers(options) })
    })
    return resumed as Promise<Result<T>>
  }

  recover(): Promise<readonly Recovered[]> {
    return recoverAll(this.#core)
  }

  async cancel(
    requestId: string,
    why: Reason = reason('CANCELLED', requestId),
  ): Promise<FailedSafe | Delivered<JsonValue>> {
    const running = this.#work.get(requestId)
    if (running) {
      this.#live.get(requestId)?.stop(why)
      await running
    } else this.#live.delete(requestId)
    const request = await this.#take(requestId)
    return this.#begin(request, async () => {
      if (!isClosed(request.state)) await recoverRequest(request)
      // Also what was failing when its process died: it has just been ended, for its own reasons.
      if (isClosed(request.state)) return closedResult(request)
      return failSafe(request, { reasons: [why], missing: [] }, ownersOf(request))
    })
  }

  async open(task: TaskClass, init: OpenRequest): Promise<Opening> {
    const { request, refused } = await openRequest(this.#core, task, init)
    const { request_id, trace_id } = request.state
    if (request.broken) return { type: 'fail_safe', result: brokenResult(request) }
    if (refused.length > 0) {
      const failure = { reasons: refused, missing: [] }
      return { type: 'fail_safe', result: await failSafe(request, failure, ownersOf(request)) }
    }
    this.#live.set(request_id, request)
    return { type: 'opened', request_id, trace_id }
  }

  async admit(requestId: string, call: CallRequest, answer?: ApprovalAnswer): Promise<Admission> {
    return admit(await this.#find(requestId), call, answer)
  }

  async settle(requestId: string, call: string, outcome: CallOutcome): Promise<Settlement> {
    const request = await this.#find(requestId)
    const admitted = request.running.get(call)?.call ?? (await findStarted(request, call))
    return settle(request, admitted, outcome)
  }

  async deliver(requestId: string, candidate: JsonValue): Promise<Delivery> {
    const request = await this.#find(requestId)
    return this.#forget(await deliver(request, candidate, ownersOf(request)), requestId)
  }

  async fail(requestId: string, reasons: readonly Reason[]): Promise<Delivery> {
    const request = await this.#find(requestId)
    return this.#forget(await failAttempt(request, reasons, ownersOf(request)), requestId)
  }

  async recoverCall(
    requestId: string,
    call: string,
  ): Promise<'applied' | 'absent' | 'in_doubt' | undefined> {
    const request = await this.#find(requestId)
    const known = request.state.calls.get(call)
    const isOpen = known && isInDoubt(known) && !request.running.has(call)
    return isOpen ? settleDoubt(request, known) : undefined
  }

  async settleInDoubt(requestId: string, call: string, found: 'applied' | 'absent'): Promise<void> {
    const request = await this.#find(requestId)
    const known = request.state.calls.get(call)
    if (known?.effect !== 'in_doubt') throw conflict(request, `call ${call} is not in doubt`)
    await record(request, known, found, 'person')
  }

  async state(requestId: string): Promise<GovernorState | undefined> {
    // A fold of its own: what this process works with is not for other hands.
    return (await loadState(this.#core, requestId))?.state
  }

  /** A request for the stepwise calls: the one at hand, or made again from its journal. */
  async #find(requestId: string): Promise<GovernedRequest> {
    const known = this.#live.get(requestId)
    if (known) return known
    const request = await this.#take(requestId)
    // Steps that come at the same time share the first: two would write the same entries.
    const first = this.#live.get(requestId) ?? request
    this.#live.set(requestId, first)
    return first
  }

  async #take(requestId: string, task?: TaskClass): Promise<GovernedRequest> {
    const live = this.#live.get(requestId)
    if (live) throw conflict(live, 'it is being worked on')
    const loaded = await loadState(this.#core, requestId)
    if (!loaded) throw unknownRequest(requestId)
    return reviveRequest(this.#core, loaded, task)
  }

  async #begin<T>(request: GovernedRequest, work: () => Promise<T>): Promise<T> {
    const id = request.state.request_id
    const live = this.#live.get(id)
    if (live) throw conflict(live, 'it is being worked on')
    this.#live.set(id, request)
    const working = work()
    const isOver = working.then(
      () => undefined,
      () => undefined,
    )
    this.#work.set(id, isOver)
    try {
      return await working
    } finally {
      this.#live.delete(id)
      this.#work.delete(id)
    }
  }

  #forget(delivery: Delivery, requestId: string): Delivery {
    if (delivery.type !== 'repair') this.#live.delete(requestId)
    return delivery
  }
}

/** A write that another process admitted; its intent is in the journal. */
async function findStarted(request: GovernedRequest, call: string): Promise<AdmittedCall> {
  const known = request.state.calls.get(call)
  if (known?.status !== 'started') throw conflict(request, `call ${call} is not running`)
  return toAdmitted(request, known, await request.fetch(known.args_hash))
}

function toAnswers({ tokens = [], denials = [] }: Resume): Answers {
  const answers = denials.map(
    ({ id, reason: why, by }) =>
      [id, { type: 'deny', reason: why, ...(by && { by }) } satisfies ApprovalAnswer] as const,
  )
  return { tokens, denials: new Map(answers) }
}

function unknownRequest(requestId: string): GovernanceError {
  return new GovernanceError(`There is no request ${requestId} in the log.`, [
    reason('STATE_CONFLICT', requestId, 'unknown request'),
  ])
}
