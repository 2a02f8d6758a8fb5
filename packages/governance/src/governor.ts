import type { JsonValue } from '@skein/base'
import type { ApprovalAnswer } from './contract/approval.ts'
import type { Actor } from './contract/envelope.ts'
import type { TaskClass } from './contract/governed.ts'
import { GovernanceError, reason, type Reason } from './contract/reason.ts'
import type { Delivered, FailedSafe, Init, Opening, Result, Resume, Run } from './contract/run.ts'
import { type Admission, admit, previewCall } from './governor/admit.ts'
import type { CallRequest } from './governor/candidate.ts'
import {
  closedResult,
  deliver,
  type Delivery,
  failAttempt,
  judgeCandidate,
  type JudgedCandidate,
} from './governor/deliver.ts'
import { type Body, drive } from './governor/drive.ts'
import { brokenResult, type FailOptions, failSafe } from './governor/fail.ts'
import { assertOutermost, loadState, reviveRequest } from './governor/load.ts'
import { draftRequest, openRequest, type OpenRequest } from './governor/open.ts'
import { type GovernorCore, type GovernorOptions, resolveOptions } from './governor/options.ts'
import {
  recoverAll,
  recoverCall,
  type Recovered,
  recoverRequest,
  settleByPerson,
} from './governor/recover.ts'
import { conflict, type GovernedRequest } from './governor/request.ts'
import { type GovernedOutcome, settle, type Settlement } from './governor/settle.ts'
import { type GovernorState, isClosed, isInDoubt } from './journal/governor-state.ts'
import type { DecidedWrite } from './journal/events.ts'
import { toAdmitted } from './governor/admitted-call.ts'
import { toFailure } from './governor/missing-evidence.ts'

/**
 * Owns the state of governed requests; only the governor changes it. It can be used in two ways that
 * share the same state machine: `run` executes a whole body of code; the stepwise calls (`open`, `admit`,
 * `settle`, `deliver`) are for a runtime that has a loop of its own. Either way another process can
 * continue a request, because its whole state is in the journal.
 */
export interface Governor {
  readonly id: string
  /** Runs a body as one request until it is delivered, ends without delivery (fails safe), or waits for people. */
  run<T extends JsonValue>(
    task: TaskClass,
    init: Init,
    body: (run: Run) => Promise<T>,
  ): Promise<Result<T>>
  /**
   * Continues a request that waits for people. The body runs again from its start, but calls that the
   * journal has recorded are not made again: their recorded results are returned.
   */
  resume<T extends JsonValue>(
    requestId: string,
    task: TaskClass,
    body: (run: Run) => Promise<T>,
    options?: Resume,
  ): Promise<Result<T>>
  /** Finds out what became of calls and requests that a crash left unfinished. Call it once at start-up. */
  recover(): Promise<readonly Recovered[]>
  /**
   * Ends a request that no one will continue: it ends without delivery, and its writes are undone. A request
   * that has already ended keeps its result.
   */
  cancel(
    requestId: string,
    why?: Reason,
    options?: FailOptions,
  ): Promise<FailedSafe | Delivered<JsonValue>>
  /**
   * Carries out what a person decided about a write that was in doubt when its request failed safe: a write that was
   * `applied` is undone. The decision is a request of its own, in the name of the person; calling this again with the
   * same `request_id` continues it.
   */
  undoDecided(task: TaskClass, request: OpenRequest, decision: DoubtDecision): Promise<FailedSafe>

  /** Opens a request (UAICP intake): checks identity, ids and input and writes the first entry. */
  open(task: TaskClass, request: OpenRequest): Promise<Opening>
  /**
   * Decides whether a call may run. When the answer is `allow`, the caller has to run the tool with
   * `call.args` and then call `settle`.
   */
  admit(requestId: string, call: CallRequest, answer?: ApprovalAnswer): Promise<Admission>
  /**
   * Returns how `admit` would decide about a call of a new request, without writing anything. For
   * frameworks that ask whether a call needs approval before they make it.
   */
  preview(
    task: TaskClass,
    request: OpenRequest,
    call: CallRequest,
  ): Promise<'allow' | 'deny' | 'review'>
  /** Records the outcome of a call that `admit` allowed. A result becomes evidence. */
  settle(requestId: string, call: string, outcome: GovernedOutcome): Promise<Settlement>
  /** Checks a candidate answer: delivers it, asks for a repair, or fails safe. */
  deliver(requestId: string, candidate: JsonValue): Promise<Delivery>
  /**
   * Like `deliver`, but a request that fails has undone nothing yet, so that the caller can stop what still works for
   * it. `cancel` then undoes its writes and ends it.
   */
  judge(requestId: string, candidate: JsonValue): Promise<JudgedCandidate>
  /** Ends an attempt that has nothing to deliver: the request is repaired or fails safe. */
  fail(requestId: string, reasons: readonly Reason[]): Promise<Delivery>
  /**
   * Finds out and records whether a call that was running when its process died had its effect; `recover`
   * does this for all such calls. A call found `absent` may be admitted again. Returns undefined when the
   * effect of the call is known.
   */
  recoverCall(
    requestId: string,
    call: string,
  ): Promise<'applied' | 'absent' | 'in_doubt' | undefined>
  /** Records whether a person found that a call in doubt had its effect (`applied`) or not (`absent`). */
  settleInDoubt(requestId: string, call: string, found: 'applied' | 'absent'): Promise<void>
  /** Returns the state of a request, computed from its journal; undefined when there is no such request. */
  state(requestId: string): Promise<GovernorState | undefined>
}

/** What a person decided about a write in doubt. */
export interface DoubtDecision extends DecidedWrite {
  readonly by: Actor
}

/** Creates a governor. It does nothing until one of its methods is called. */
export function governor(options: GovernorOptions): Governor {
  return new JournalGovernor(resolveOptions(options))
}

class JournalGovernor implements Governor {
  readonly #core: GovernorCore
  /** The requests that this process works on, by id. `run` and `resume` of them throw a conflict. */
  readonly #live = new Map<string, GovernedRequest>()
  /** For each request in `run`, `resume` or `cancel`: a promise that resolves when that work has ended. */
  readonly #work = new Map<string, Promise<void>>()
  /** How many visits (of `recoverCall`, `settleInDoubt`) share a request; Infinity if it has another use. */
  readonly #visits = new WeakMap<GovernedRequest, number>()

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
    if (refused) return failSafe(request, refused)
    return this.#begin(request, () => drive(request, body, init)) as Promise<Result<T>>
  }

  async resume<T extends JsonValue>(
    requestId: string,
    task: TaskClass,
    body: (run: Run) => Promise<T>,
    options: Resume = {},
  ): Promise<Result<T>> {
    const request = assertOutermost(await this.#load(requestId, task))
    const { tokens = [], denials = [] } = options
    const refusals = denials.map((one) => [one.id, { type: 'deny', ...one }] as const)
    const run = this.#begin(request, async () => {
      if (!isClosed(request.state)) await recoverRequest(request)
      if (isClosed(request.state)) return closedResult(request)
      const answers = { tokens, denials: new Map<string, ApprovalAnswer>(refusals) }
      return drive(request, body as Body, { ...options, answers })
    })
    return run as Promise<Result<T>>
  }

  recover(): Promise<readonly Recovered[]> {
    return recoverAll(this.#core)
  }

  async cancel(
    requestId: string,
    why: Reason = reason('CANCELLED', requestId),
    options: FailOptions = {},
  ): Promise<FailedSafe | Delivered<JsonValue>> {
    const running = this.#work.get(requestId)
    if (running) {
      this.#live.get(requestId)?.stop(why)
      await running
    } else this.#live.delete(requestId)
    const request = await this.#load(requestId)
    return this.#begin(request, async () => {
      if (!isClosed(request.state)) await recoverRequest(request, options)
      // `recoverRequest` ends a request that was already failing, whose deadline has passed, or whose
      // intake had not finished. Such a request failed for that reason, and `why` is not used.
      if (isClosed(request.state)) return closedResult(request)
      return failSafe(request, await toFailure(request, [why]), options)
    })
  }

  async undoDecided(
    task: TaskClass,
    init: OpenRequest,
    { by, ...decided }: DoubtDecision,
  ): Promise<FailedSafe> {
    const id = init.request_id
    const isKnown = id !== undefined && (await loadState(this.#core, id)) !== undefined
    if (isKnown) {
      const result = await this.cancel(id)
      if (result.state === 'fail_safe') return result
      throw conflict(await this.#load(id, task), 'it is no decision about a write')
    }
    const { request, refused } = await openRequest(this.#core, task, { ...init, decided })
    if (request.broken) return brokenResult(request)
    const finding = reason('TOOL_IN_DOUBT', decided.call, `found ${decided.found}`)
    const failure = refused ?? { reasons: [finding], missing: [] }
    return this.#begin(request, () => failSafe(request, failure, { actor: by }))
  }

  async open(task: TaskClass, init: OpenRequest): Promise<Opening> {
    const { request, refused } = await openRequest(this.#core, task, init)
    if (request.broken) return { type: 'fail_safe', result: brokenResult(request) }
    if (refused) return { type: 'fail_safe', result: await failSafe(request, refused) }
    const { request_id, trace_id } = request.state
    this.#live.set(request_id, request)
    return { type: 'opened', request_id, trace_id }
  }

  async admit(requestId: string, call: CallRequest, answer?: ApprovalAnswer): Promise<Admission> {
    return admit(assertOutermost(await this.#find(requestId)), call, answer)
  }

  async preview(
    task: TaskClass,
    init: OpenRequest,
    call: CallRequest,
  ): Promise<'allow' | 'deny' | 'review'> {
    const { request, reasons } = draftRequest(this.#core, task, init)
    return reasons.length > 0 ? 'deny' : previewCall(request, call)
  }

  async settle(requestId: string, call: string, outcome: GovernedOutcome): Promise<Settlement> {
    const request = await this.#find(requestId)
    const running = request.running.get(call)?.call
    if (running) return settle(request, running, outcome)
    // Another process allowed the call, or the call was recorded as in doubt and has reported its result late. So the call
    // is rebuilt from its journal entry.
    const record = request.state.calls.get(call)
    if (!record || !isInDoubt(record)) throw conflict(request, `call ${call} is not running`)
    const args = await request.fetch(record.args_hash)
    return settle(request, toAdmitted(request, record, args), outcome)
  }

  async deliver(requestId: string, candidate: JsonValue): Promise<Delivery> {
    const request = assertOutermost(await this.#find(requestId))
    return this.#forget(await deliver(request, candidate), requestId)
  }

  async judge(requestId: string, candidate: JsonValue): Promise<JudgedCandidate> {
    const request = assertOutermost(await this.#find(requestId))
    return this.#forget(await judgeCandidate(request, candidate), requestId)
  }

  async fail(requestId: string, reasons: readonly Reason[]): Promise<Delivery> {
    const request = await this.#find(requestId)
    return this.#forget(await failAttempt(request, reasons), requestId)
  }

  recoverCall(
    requestId: string,
    call: string,
  ): Promise<'applied' | 'absent' | 'in_doubt' | undefined> {
    return this.#visit(requestId, (request) => recoverCall(request, call))
  }

  settleInDoubt(requestId: string, call: string, found: 'applied' | 'absent'): Promise<void> {
    return this.#visit(requestId, (request) => settleByPerson(request, call, found))
  }

  async state(requestId: string): Promise<GovernorState | undefined> {
    // Computed again from the journal: the state that this process works with is mutable.
    return (await loadState(this.#core, requestId))?.state
  }

  /**
   * Returns the request for a stepwise call: the object that this process already works with, or a new
   * one loaded from the journal.
   */
  async #find(requestId: string, isVisit = false): Promise<GovernedRequest> {
    const live = this.#live.get(requestId) ?? (await this.#load(requestId))
    // Two stepwise calls may load the request at the same time. They have to share one object, or
    // both would write entries with the same number.
    const first = this.#live.get(requestId)
    const request = first ?? live
    this.#live.set(requestId, request)
    const visits = this.#visits.get(request) ?? (first ? Infinity : 0)
    this.#visits.set(request, isVisit ? visits + 1 : Infinity)
    return request
  }

  /** Lends a request for one visit. If nothing else here uses it, `resume` can continue it afterwards. */
  async #visit<T>(requestId: string, work: (request: GovernedRequest) => Promise<T>): Promise<T> {
    const request = await this.#find(requestId, true)
    try {
      return await work(request)
    } finally {
      const remaining = (this.#visits.get(request) ?? Infinity) - 1
      this.#visits.set(request, remaining)
      if (remaining === 0 && this.#live.get(requestId) === request) this.#live.delete(requestId)
    }
  }

  /** Reads a request from the journal. Throws if it does not exist or if this process is working on it. */
  async #load(requestId: string, task?: TaskClass): Promise<GovernedRequest> {
    this.#assertFree(requestId)
    const loadedState = await loadState(this.#core, requestId)
    if (loadedState) return reviveRequest(this.#core, loadedState, task)
    throw new GovernanceError(`There is no request ${requestId} in the log.`, [
      reason('STATE_CONFLICT', requestId, 'unknown request'),
    ])
  }

  /** Runs `work` on a request. Until it ends, nothing else in this process can work on that request. */
  async #begin<T>(request: GovernedRequest, work: () => Promise<T>): Promise<T> {
    const id = request.state.request_id
    this.#assertFree(id)
    this.#live.set(id, request)
    const working = work()
    const finish = (): void => undefined
    this.#work.set(id, working.then(finish, finish))
    try {
      return await working
    } finally {
      this.#live.delete(id)
      this.#work.delete(id)
    }
  }

  #assertFree(requestId: string): void {
    const live = this.#live.get(requestId)
    if (live) throw conflict(live, 'it is being worked on')
  }

  #forget<T extends Delivery | JudgedCandidate>(delivery: T, requestId: string): T {
    if (delivery.type !== 'repair') this.#live.delete(requestId)
    return delivery
  }
}
