import { type JsonValue, SkeinError } from '@skein/base'
import type { ApprovalAnswer, ApprovalRequest } from '../contract/approval.ts'
import { type TaskClass, toolCore, type ToolCore } from '../contract/governed.ts'
import {
  type Actor,
  type Envelope,
  type Hash,
  hashText,
  type Outcome,
  parseFrozen,
  type RollbackAction,
  type State,
  type Streaming,
} from '../contract/envelope.ts'
import type { Evidence } from '../contract/evidence.ts'
import { hashPolicies, type Policy } from '../contract/policy.ts'
import { GovernanceError, reason, type Reason } from '../contract/reason.ts'
import type { JournalEvent, JournalItem, TransitionData } from '../journal/events.ts'
import type { AuditAppendOptions } from '../journal/journal.ts'
import { createLineWriter, type LineWriter } from '../journal/line-writer.ts'
import { type GovernorState, isClosed } from '../journal/governor-state.ts'
import { reduceJournal } from '../journal/reduce.ts'
import type { GovernorCore } from './options.ts'
import type { AdmittedCall } from './admitted-call.ts'

/**
 * The members of a log entry besides its event. `state` is set only for transitions; otherwise it is the
 * current state.
 */
export interface EntryOptions extends AuditAppendOptions {
  readonly outcome: Outcome
  readonly actor?: Actor
  readonly state?: State
  readonly rollback?: RollbackAction
  readonly streaming?: Streaming
}

/** The callbacks of the code that started the run. */
export interface Listeners {
  readonly approve?: (request: ApprovalRequest) => Promise<ApprovalAnswer>
  readonly onChunk?: (chunk: Envelope) => void
}

/**
 * One request while this process works on it. `state` is computed from all its journal entries. All other
 * fields (running calls, the abort signal, cached evidence) exist only in this process.
 */
export class GovernedRequest {
  readonly core: GovernorCore
  readonly task: TaskClass
  readonly state: GovernorState
  readonly parent: GovernedRequest | undefined
  readonly policies: readonly Policy[]
  readonly policyHash: Hash
  readonly system: Actor
  readonly agent: Actor
  readonly controller: AbortController = new AbortController()
  /**
   * Calls that are being judged, or may run and have no recorded outcome yet, by call id. `stop` ends the
   * wait for the call's tool.
   */
  readonly running: Map<string, { readonly call: AdmittedCall; stop?: (why: Reason) => void }> =
    new Map()
  /** The promises that the end of the run has to wait for. */
  readonly pending: Set<Promise<unknown>> = new Set()
  readonly children: Map<string, GovernedRequest> = new Map()
  readonly evidence: Map<string, Evidence> = new Map()
  listeners: Listeners = {}
  /** Position of the next chunk in this execution of the body. */
  chunkIndex = 0
  /**
   * Why the run was stopped: it was cancelled, its deadline passed, or its log failed. Undefined if it
   * was not stopped.
   */
  stopped: Reason | undefined
  /**
   * The error of the first failed write to the journal or the payload store; after it nothing more is
   * written.
   */
  broken: GovernanceError | undefined
  first: number | undefined
  last: number | undefined
  #write: LineWriter

  constructor(core: GovernorCore, task: TaskClass, state: GovernorState, parent?: GovernedRequest) {
    this.core = core
    this.task = task
    this.state = state
    this.parent = parent
    this.policies = policiesOf(core, task, parent)
    this.policyHash = hashPolicies(this.policies)
    this.system = { type: 'system', id: core.id }
    this.agent = { type: 'agent', id: state.identity.agent_id }
    this.#write = createLineWriter(state)
  }

  /**
   * Returns the wrapped function and the declaration of one of the task's tools; undefined for an unknown
   * name, and for a name that belongs to another tool than `given`.
   */
  findTool(name: string, given?: object): ToolCore | undefined {
    const tool = this.task.tools.find((one) => one.name === name && (given ?? one) === one)
    return tool && toolCore(tool)
  }

  /** Like `findTool`, but throws when the task has no such tool. For calls that were allowed before. */
  getTool(name: string): ToolCore {
    const core = this.findTool(name)
    if (!core) throw conflict(this, `its task has no tool "${name}"`)
    return core
  }

  /**
   * Applies one entry to the state and writes it to the log. The state changes synchronously, so it follows
   * the order of the calls to `submit`. A caller that may only act once the entry is stored has to await the
   * result.
   */
  submit(event: JournalEvent, options: EntryOptions): number | Promise<number> {
    if (this.broken) throw this.broken
    const { state } = this
    const item = {
      ...event,
      request_id: state.request_id,
      trace_id: state.trace_id,
      seq: state.seq,
      attempt: state.attempt,
      state: options.state ?? state.state,
      outcome: options.outcome,
      actor: options.actor ?? this.system,
      at: this.core.clock.now(),
      parent_trace_id: state.parent_trace_id,
      rollback: options.rollback,
      streaming: options.streaming,
    } as JournalItem
    reduceJournal(state, item)
    return this.append(item, options)
  }

  /** Writes the line of an entry that was already applied to the state. */
  append(item: JournalItem, { durable, seal }: AuditAppendOptions = {}): number | Promise<number> {
    const entry = { request_id: item.request_id, seq: item.seq, line: this.#write(item) }
    try {
      const options =
        durable || seal ? { durable: durable === true, seal: seal === true } : undefined
      const index = this.core.audit.append(entry, options)
      this.#observe(item)
      return typeof index === 'number' ? this.#wrote(index) : this.#wait(index)
    } catch (error) {
      throw this.#break(error)
    }
  }

  /**
   * Moves the request to another state, if `TRANSITIONS` allows it. The new state is set before the log
   * has answered, so when two callers compete, the second one gets a conflict.
   */
  async move(
    to: State,
    why: Pick<TransitionData, 'reasons' | 'missing'> = {},
    actor?: Actor,
  ): Promise<void> {
    const data = { from: this.state.state, ...why }
    const outcome = to === 'fail_safe' ? 'uncertain' : 'pending'
    await this.submit(
      { type: 'transition', data },
      { state: to, outcome, actor, durable: to === 'fail_safe' },
    )
  }

  /** Moves the request from `plan` to `execute`, unless it is there already. Throws in any other phase. */
  async execute(): Promise<void> {
    if (this.state.state === 'plan') await this.move('execute')
    if (this.state.state !== 'execute') throw conflict(this, `it is in ${this.state.state}`)
  }

  /** Stores a payload and returns its hash. */
  async keep(text: string, options?: { readonly durable?: boolean }): Promise<Hash> {
    const hash = hashText(text)
    await this.put(hash, text, options)
    return hash
  }

  /** Stores a payload. Returns a promise only if the payload store does. */
  put(hash: Hash, text: string, options?: { readonly durable?: boolean }): void | Promise<void> {
    try {
      const writing = this.core.payloads.put(hash, text, options)
      return writing?.catch((error: unknown) => {
        throw this.#break(error)
      })
    } catch (error) {
      throw this.#break(error)
    }
  }

  /**
   * Reads a payload by its hash and freezes it. Throws if it was erased or if its text no longer has this
   * hash.
   */
  async fetch(hash: Hash): Promise<JsonValue> {
    const text = await this.core.payloads.get(hash)
    if (text === undefined || hashText(text) !== hash) {
      throw new GovernanceError(
        `The payload ${hash} of request ${this.state.request_id} is ${text === undefined ? 'gone' : 'damaged'}.`,
        [reason('EVIDENCE_INVALID', hash)],
        { hint: 'Cancel the request: it cannot continue without this payload.' },
      )
    }
    return parseFrozen(text)
  }

  /**
   * Stops the run: aborts its signal and ends the wait for tools and children. Only the first call has an
   * effect.
   */
  stop(why: Reason): void {
    if (this.stopped || isClosed(this.state)) return
    this.stopped = why
    this.controller.abort(new GovernanceError(`The run was stopped: ${why.code}.`, [why]))
    for (const { stop } of this.running.values()) stop?.(why)
    for (const child of this.children.values()) child.stop(why)
  }

  /** Makes the end of the run wait for `work`. */
  track<T>(work: Promise<T>): Promise<T> {
    this.pending.add(work)
    const forget = (): void => void this.pending.delete(work)
    work.then(forget, forget)
    return work
  }

  /** Resolves when all work added with `track` has ended. */
  async idle(): Promise<void> {
    while (this.pending.size > 0) await Promise.allSettled(this.pending)
  }

  #wrote(index: number): number {
    this.first ??= index
    this.last = index
    return index
  }

  async #wait(index: Promise<number>): Promise<number> {
    try {
      return this.#wrote(await index)
    } catch (error) {
      throw this.#break(error)
    }
  }

  #break(error: unknown): GovernanceError {
    const isConflict = SkeinError.is(error) && error.code === 'STATE_CONFLICT'
    const code = isConflict ? 'STATE_CONFLICT' : 'AUDIT_UNAVAILABLE'
    this.broken ??= new GovernanceError(
      isConflict
        ? `Another process has gone on with request ${this.state.request_id}.`
        : `The audit log of request ${this.state.request_id} cannot be written.`,
      [reason(code, this.state.request_id)],
      { cause: error, hint: 'This process stops working on the request; recover() continues it.' },
    )
    this.stop(this.broken.reasons[0] as Reason)
    return this.broken
  }

  #observe(item: JournalItem): void {
    try {
      this.core.observe?.(item)
    } catch {
      // An error in the `observe` callback is ignored, because telemetry must not affect the run.
    }
  }
}

/**
 * Returns the policies that judge a request: the governor's, those of its parent requests, and its task's
 * own.
 */
export function policiesOf(
  core: GovernorCore,
  { policy }: TaskClass,
  parent: GovernedRequest | undefined,
): readonly Policy[] {
  const outer = parent?.policies ?? core.policies
  return policy && !outer.includes(policy) ? [...outer, policy] : outer
}

/** Creates the error of an operation that the current state of the request does not allow. */
export function conflict({ state }: GovernedRequest, detail: string): GovernanceError {
  return new GovernanceError(`Request ${state.request_id} cannot do this: ${detail}.`, [
    reason('STATE_CONFLICT', state.request_id, detail),
  ])
}

/** Waits for `work`, of the body or of a person, but rejects as soon as the run is stopped. */
export function untilStopped<T>({ controller }: GovernedRequest, work: Promise<T>): Promise<T> {
  const { signal } = controller
  return new Promise((resolve, reject) => {
    const stop = (): void => reject(signal.reason as Error)
    if (signal.aborted) stop()
    signal.addEventListener('abort', stop, { once: true })
    work.then(resolve, reject).finally(() => signal.removeEventListener('abort', stop))
  })
}
