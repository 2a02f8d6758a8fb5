import { deepFreeze, type JsonValue, SkeinError } from '@skein/base'
import type { ApprovalAnswer, ApprovalRequest } from '../contract/approval.ts'
import {
  type AppendOptions,
  createLineWriter,
  identityOf,
  type LineWriter,
  readItem,
} from '../journal/journal.ts'
import { hashPolicies } from './decide.ts'
import type { TaskClass } from '../contract/define-task-class.ts'
import {
  type Actor,
  type Envelope,
  type Hash,
  hashText,
  type Outcome,
  type RollbackAction,
  type State,
  type Streaming,
} from '../contract/envelope.ts'
import type { Evidence } from '../contract/evidence.ts'
import type { GovernorCore } from './options.ts'
import { type GovernorState, isClosed } from '../journal/state.ts'
import type { JournalEvent, JournalItem } from '../journal/events.ts'
import type { Policy } from '../contract/policy.ts'
import { GovernanceError, reason, type Reason } from '../contract/reason.ts'
import { openState, reduceJournal } from '../journal/reduce.ts'

/** What an entry says beside its event. `state` differs from the present one in transitions only. */
export interface EntryOptions extends AppendOptions {
  readonly outcome: Outcome
  readonly actor?: Actor
  readonly state?: State
  readonly rollback?: RollbackAction | undefined
  readonly streaming?: Streaming | undefined
}

/** A call that passed the gate and has not been settled. */
export interface AdmittedCall {
  readonly request_id: string
  readonly call: string
  readonly tool: string
  readonly risk: 'read_only' | 'write_low_risk' | 'write_high_risk'
  /** A frozen snapshot: what was judged is what runs. */
  readonly args: JsonValue
  readonly args_hash: Hash
  readonly idempotency_key: string
}

/** How whoever started a run listens to it. */
export interface Listeners {
  readonly approve?: ((request: ApprovalRequest) => Promise<ApprovalAnswer>) | undefined
  readonly onChunk?: ((chunk: Envelope) => void) | undefined
}

/**
 * One request while this process works on it. Its state is the fold of what `submit` wrote; the rest
 * is what only lives as long as the process: running calls, the abort signal, cached evidence.
 */
export class GovernedRequest {
  readonly core: GovernorCore
  readonly task: TaskClass
  readonly state: GovernorState
  readonly parent: GovernedRequest | undefined
  readonly policies: readonly Policy[]
  readonly policyHash: Hash
  readonly controller: AbortController = new AbortController()
  /** Admitted and unsettled calls, with what stops the wait for them. */
  readonly running: Map<string, { readonly call: AdmittedCall; stop?: (why: Reason) => void }> =
    new Map()
  /** Work the end of the run has to wait for. */
  readonly pending: Set<Promise<unknown>> = new Set()
  readonly children: Map<string, GovernedRequest> = new Map()
  readonly evidence: Map<string, Evidence> = new Map()
  listeners: Listeners = {}
  /** Position of the next chunk in this pass over the body. */
  chunkIndex = 0
  /** Why the run was stopped from outside. */
  stopped: Reason | undefined
  /** Why the journal can no longer be written. */
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
    this.#write = createLineWriter(state)
  }

  get system(): Actor {
    return { type: 'system', id: this.core.id }
  }

  get agent(): Actor {
    return { type: 'agent', id: this.state.identity.agent_id }
  }

  /** Writes one entry and folds it. The state changes with the order of calls, actions wait for it. */
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

  /** Hands the line to the log. */
  append(item: JournalItem, { durable, seal }: AppendOptions = {}): number | Promise<number> {
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
   * Changes the state, if the table allows it. The fold changes with the call and not with the answer
   * of the log, so of two that compete the second finds another state and is a conflict.
   */
  async move(to: State, options: { readonly reasons?: readonly Reason[] } = {}): Promise<void> {
    const data = { from: this.state.state, ...options }
    const outcome = to === 'fail_safe' ? 'uncertain' : 'pending'
    await this.submit(
      { type: 'transition', data },
      { state: to, outcome, durable: to === 'fail_safe' },
    )
  }

  /** Keeps a payload and answers its hash. */
  async keep(text: string): Promise<Hash> {
    const hash = hashText(text)
    await this.put(hash, text)
    return hash
  }

  /** Keeps a payload; done at once where the store does not make one wait. */
  put(hash: Hash, text: string, options?: { readonly durable?: boolean }): void | Promise<void> {
    try {
      const stored = this.core.payloads.put(hash, text, options)
      return stored?.catch((error: unknown) => {
        throw this.#break(error)
      })
    } catch (error) {
      throw this.#break(error)
    }
  }

  /** A payload by its hash, frozen; throws where it was erased or is not what it was. */
  async fetch(hash: Hash): Promise<JsonValue> {
    const text = await this.core.payloads.get(hash)
    if (text === undefined || hashText(text) !== hash) {
      throw new GovernanceError(
        `The payload ${hash} of request ${this.state.request_id} is ${text === undefined ? 'gone' : 'damaged'}.`,
        [reason('EVIDENCE_INVALID', hash)],
        { hint: 'Cancel the run; it cannot go on without it.' },
      )
    }
    return deepFreeze(JSON.parse(text) as JsonValue)
  }

  /** Stops waiting for everything that runs; the first reason counts. */
  stop(why: Reason): void {
    if (this.stopped || isClosed(this.state)) return
    this.stopped = why
    this.controller.abort(new GovernanceError(`The run was stopped: ${why.code}.`, [why]))
    for (const { stop } of this.running.values()) stop?.(why)
    for (const child of this.children.values()) child.stop(why)
  }

  /** Keeps `work` in the list of what the end of the run waits for. */
  track<T>(work: Promise<T>): Promise<T> {
    this.pending.add(work)
    const forget = (): void => void this.pending.delete(work)
    work.then(forget, forget)
    return work
  }

  /** Resolves when nothing runs any more. */
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
      { cause: error, hint: 'Nothing more is done for this request here; recover() takes it up.' },
    )
    this.stop(this.broken.reasons[0] as Reason)
    return this.broken
  }

  #observe(item: JournalItem): void {
    try {
      this.core.observe?.(item)
    } catch {
      // Telemetry may be lost; it must never decide what happens.
    }
  }
}

/** Who is heard about an action: the governor's policies, the task's, and those of tasks around it. */
export function policiesOf(
  core: GovernorCore,
  { policy }: TaskClass,
  parent: GovernedRequest | undefined,
): readonly Policy[] {
  const outer = parent?.policies ?? core.policies
  return policy && !outer.includes(policy) ? [...outer, policy] : outer
}

/** The error of a step that the present state does not allow. */
export function conflict({ state }: GovernedRequest, detail: string): GovernanceError {
  return new GovernanceError(`Request ${state.request_id} cannot do this: ${detail}.`, [
    reason('STATE_CONFLICT', state.request_id, detail),
  ])
}

/** The request as its journal has it; undefined when there is none. */
export async function loadState(
  core: GovernorCore,
  requestId: string,
): Promise<LoadedState | undefined> {
  let state: GovernorState | undefined
  let first: number | undefined
  let last: number | undefined
  for await (const record of core.audit.read({ requestId })) {
    const item = readItem(record)
    if (state) reduceJournal(state, item)
    else if (item.type === 'opened') state = openState(item, identityOf(record.envelope))
    first ??= record.index
    last = record.index
  }
  return state && { state, first, last }
}

export interface LoadedState {
  readonly state: GovernorState
  readonly first: number | undefined
  readonly last: number | undefined
}
