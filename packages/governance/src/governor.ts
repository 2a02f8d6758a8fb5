import type { JsonValue } from '@skein/base'
import type { ApprovalAnswer } from './contract/approval.ts'
import type { TaskClass } from './contract/governed.ts'
import type { Actor } from './contract/envelope.ts'
import { GovernanceError, reason, type Reason } from './contract/reason.ts'
import type { Delivered, FailedSafe, Init, Result, Run } from './contract/run.ts'
import { admit, type Admission, type CallRequest } from './governor/admit.ts'
import { closedResult, deliver, failAttempt, type Delivery } from './governor/deliver.ts'
import { drive, type Body } from './governor/drive.ts'
import { brokenResult, failSafe } from './governor/fail.ts'
import { loadState, openRequest, reviveRequest, type OpenRequest } from './governor/open.ts'
import { resolveOptions, type GovernorCore, type GovernorOptions } from './governor/options.ts'
import {
  recordFound,
  recoverAll,
  recoverRequest,
  settleDoubt,
  type Recovered,
} from './governor/recover.ts'
import { conflict, toAdmitted, type GovernedRequest } from './governor/request.ts'
import { settle, type GovernedOutcome, type Settlement } from './governor/execute.ts'
import { isClosed, isInDoubt, type GovernorState } from './journal/reduce.ts'

/** What `resume` is given: the answers of people, and who listens from now on. */
export interface Resume extends Pick<Init, 'approve' | 'onChunk' | 'signal'> {
  /** Approval tokens in any order; each is matched to the request that it was signed for. */
  readonly tokens?: readonly string[]
  readonly denials?: readonly Denial[]
}

/** A person's refusal of one approval request. */
export interface Denial {
  /** Id of the approval request. */
  readonly id: string
  readonly reason: string
  readonly by?: Actor
}

/** The answer to `open`: the request's ids, or why intake refused the request. */
export type Opening =
  | { readonly type: 'opened'; readonly request_id: string; readonly trace_id: string }
  | { readonly type: 'fail_safe'; readonly result: FailedSafe }

/**
 * Owns the state of governed requests and every change of it. There are two ways to use it, over the
 * same machine. `run` takes a body of code and does everything. The stepwise calls (`open`, `admit`,
 * `settle`, `deliver`) are for a runtime that has a loop of its own. Both can continue in another
 * process, because all they know is in the journal.
 */
export interface Governor {
  readonly id: string
  /** Runs a body as one request until it is delivered, has failed safe, or waits for people. */
  run<T extends JsonValue>(
    task: TaskClass,
    init: Init,
    body: (run: Run) => Promise<T>,
  ): Promise<Result<T>>
  /** Continues a request that waits. The body runs from its start; recorded calls are not repeated. */
  resume<T extends JsonValue>(
    requestId: string,
    task: TaskClass,
    body: (run: Run) => Promise<T>,
    options?: Resume,
  ): Promise<Result<T>>
  /** Settles what a crash left open. Call it once at start-up. */
  recover(): Promise<readonly Recovered[]>
  /** Ends a request that nobody will continue: it fails safe and its writes are undone. */
  cancel(requestId: string, why?: Reason): Promise<FailedSafe | Delivered<JsonValue>>

  /** Intake: checks identity and input and writes the request's first entry. */
  open(task: TaskClass, request: OpenRequest): Promise<Opening>
  /** The gate before a call. Whoever is told `allow` runs `call.args` and then calls `settle`. */
  admit(requestId: string, call: CallRequest, answer?: ApprovalAnswer): Promise<Admission>
  /** Records how an admitted call ended. A result becomes evidence. */
  settle(requestId: string, call: string, outcome: GovernedOutcome): Promise<Settlement>
  /** The gate before delivery. */
  deliver(requestId: string, candidate: JsonValue): Promise<Delivery>
  /** Ends an attempt that has no candidate. */
  fail(requestId: string, reasons: readonly Reason[]): Promise<Delivery>
  /**
   * Settles one call that was running when its process died, as `recover` does for all of them. A call
   * found `absent` may be admitted again. Undefined: the call is not in doubt.
   */
  recoverCall(
    requestId: string,
    call: string,
  ): Promise<'applied' | 'absent' | 'in_doubt' | undefined>
  /** Records what a person found out about an effect in doubt. */
  settleInDoubt(requestId: string, call: string, found: 'applied' | 'absent'): Promise<void>
  /** The fold of a request's journal; undefined when there is no such request. */
  state(requestId: string): Promise<GovernorState | undefined>
}

/** Makes a governor. Nothing runs until `run`, `resume`, `recover` or `open`. */
export function governor(options: GovernorOptions): Governor {
  return new JournalGovernor(resolveOptions(options))
}

class JournalGovernor implements Governor {
  readonly #core: GovernorCore
  /** Requests that this process works on. A second worker on one of them is a conflict. */
  readonly #live = new Map<string, GovernedRequest>()
  /** For each request in `run` or `resume`: resolves when that call has ended. */
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
    if (refused) return failSafe(request, refused)
    return this.#begin(request, () => drive(request, body, init)) as Promise<Result<T>>
  }

  async resume<T extends JsonValue>(
    requestId: string,
    task: TaskClass,
    body: (run: Run) => Promise<T>,
    options: Resume = {},
  ): Promise<Result<T>> {
    const request = await this.#load(requestId, task)
    const { tokens = [], denials = [] } = options
    const denied = denials.map(
      ({ id, reason: why, by }) => [id, { type: 'deny', reason: why, by }] as const,
    )
    const resumed = this.#begin(request, async () => {
      if (!isClosed(request.state)) await recoverRequest(request)
      if (isClosed(request.state)) return closedResult(request)
      const answers = { tokens, denials: new Map<string, ApprovalAnswer>(denied) }
      return drive(request, body as Body, { ...options, answers })
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
    const request = await this.#load(requestId)
    return this.#begin(request, async () => {
      if (!isClosed(request.state)) await recoverRequest(request)
      // A request that was already failing when its process died was ended by recoverRequest, for the
      // reasons it had then; `why` comes too late for it.
      if (isClosed(request.state)) return closedResult(request)
      return failSafe(request, { reasons: [why], missing: [] })
    })
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
    return admit(await this.#find(requestId), call, answer)
  }

  async settle(requestId: string, call: string, outcome: GovernedOutcome): Promise<Settlement> {
    const request = await this.#find(requestId)
    const running = request.running.get(call)?.call
    if (running) return settle(request, running, outcome)
    // Another process admitted the call: its intent is in the journal.
    const known = request.state.calls.get(call)
    if (known?.status !== 'started') throw conflict(request, `call ${call} is not running`)
    const args = await request.fetch(known.args_hash)
    return settle(request, toAdmitted(request, known, args), outcome)
  }

  async deliver(requestId: string, candidate: JsonValue): Promise<Delivery> {
    const request = await this.#find(requestId)
    return this.#forget(await deliver(request, candidate), requestId)
  }

  async fail(requestId: string, reasons: readonly Reason[]): Promise<Delivery> {
    const request = await this.#find(requestId)
    return this.#forget(await failAttempt(request, reasons), requestId)
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
    await recordFound(request, known, found, 'person')
  }

  async state(requestId: string): Promise<GovernorState | undefined> {
    // Folded anew: the state that this process works with changes in place and must not get out.
    return (await loadState(this.#core, requestId))?.state
  }

  /** The request for a stepwise call: the one this process works on, or one read from the journal. */
  async #find(requestId: string): Promise<GovernedRequest> {
    const known = this.#live.get(requestId)
    if (known) return known
    const request = await this.#load(requestId)
    // Two stepwise calls may load the request at the same time. They have to share one object, or
    // both would write entries with the same number.
    const first = this.#live.get(requestId) ?? request
    this.#live.set(requestId, first)
    return first
  }

  /** Reads a request from the journal; throws if this process is working on it. */
  async #load(requestId: string, task?: TaskClass): Promise<GovernedRequest> {
    this.#assertFree(requestId)
    const loaded = await loadState(this.#core, requestId)
    if (loaded) return reviveRequest(this.#core, loaded, task)
    throw new GovernanceError(`There is no request ${requestId} in the log.`, [
      reason('STATE_CONFLICT', requestId, 'unknown request'),
    ])
  }

  /** Does one piece of work on a request, while nothing else in this process may work on it. */
  async #begin<T>(request: GovernedRequest, work: () => Promise<T>): Promise<T> {
    const id = request.state.request_id
    this.#assertFree(id)
    this.#live.set(id, request)
    const working = work()
    const done = (): void => undefined
    this.#work.set(id, working.then(done, done))
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

  #forget(delivery: Delivery, requestId: string): Delivery {
    if (delivery.type !== 'repair') this.#live.delete(requestId)
    return delivery
  }
}
