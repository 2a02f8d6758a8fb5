import { canonicalJson, type Clock, type JsonValue } from '@skein/base'
import {
  type Admission,
  type ApprovalAnswer,
  type Approvals,
  type GovernedOutcome,
  defineTaskClass,
  type Delegate,
  type Envelope,
  GovernanceError,
  type Governor,
  type GovernorOptions,
  type Identity,
  type JournalItem,
  reason,
  type Reason,
  REASON_CODES,
  type ReasonCode,
  type Settlement,
  type State,
  type TaskClass,
  type Undo,
} from '@skein/governance'
import type { RuntimeEvent } from '../contract/event.ts'
import type { Store } from '../store/store.ts'
import type { ApprovalSigner } from './approval-signer.ts'
import { admissionEvents, deliveryEvent, evidenceEvent } from './gate-events.ts'
import { sessionIdentity, traceIdOf } from './session-identity.ts'
import { SessionJournal } from './session-journal.ts'
import type {
  DecidedUndo,
  FailedSession,
  FailedWrite,
  GovernanceWrites,
  GovernedSession,
  SessionDelivery,
  SessionGovernor,
  WriteDecision,
} from './session-governor.ts'
import type { SessionTasks } from './session-tasks.ts'
import type { DelegateSession } from './delegates.ts'

/** The parts from which a `JournaledSession` is built. */
export interface JournaledSessionParts {
  readonly session: GovernedSession
  readonly requestId: string
  readonly store: Store
  readonly clock: Clock
  readonly signer: ApprovalSigner
  readonly tasks: SessionTasks
  readonly ending: Map<string, GovernedSession>
  readonly govern: (
    parts: Pick<
      GovernorOptions,
      'audit' | 'payloads' | 'approvals' | 'tasks' | 'observe' | 'delegates'
    >,
  ) => Governor
}

type Call = Parameters<SessionGovernor['admit']>[0]

/**
 * A governor of `@skein/governance` whose records (its journal) are committed together with the events of the
 * thread.
 */
export class JournaledSession implements SessionGovernor {
  readonly requestId: string
  readonly #parts: JournaledSessionParts
  readonly #journal: SessionJournal
  readonly #governor: Governor
  /**
   * Calls that this governor admitted and that are not settled. The key is the call's id in the session, the
   * value is its id in events.
   */
  readonly #admitted = new Map<string, string>()
  #events: RuntimeEvent[] = []
  /** The current state of the request, from its journal. */
  #state: State
  readonly #task: TaskClass
  /** The place of the request's first line in the audit log; undefined if it was not committed when this was opened. */
  readonly #from: number | undefined
  /** The sessions of subagents that worked for this one, by request id, once they were looked up. */
  #delegates: ReadonlyMap<string, DelegateSession> = new Map()
  /** Why records of the end of the request could not be committed. */
  readonly #unwritten: unknown[] = []

  /** Continues the session's request from its records in the audit log, or opens a new request. */
  static async open(parts: JournaledSessionParts): Promise<SessionGovernor> {
    const { session, isNew } = await JournaledSession.#load(parts)
    if (isNew) await session.#begin()
    return session
  }

  /** Carries out a person's decision, as a request of its own (`parts.requestId`), or continues that. */
  static async undoDecided(
    parts: JournaledSessionParts,
    decision: WriteDecision,
  ): Promise<DecidedUndo> {
    const { session } = await JournaledSession.#load(parts)
    const end = await session.#undoDecided(decision)
    return { ...end, writes: session.takeWrites() }
  }

  static async #load(
    parts: JournaledSessionParts,
  ): Promise<{ readonly session: JournaledSession; readonly isNew: boolean }> {
    const { store, session, requestId } = parts
    const self: { session?: JournaledSession } = {}
    const journal = new SessionJournal({
      store,
      tree: session.rootId,
      requestId,
      flush: session.commit && (async () => self.session!.#flush(session.commit!)),
    })
    const record = await journal.find()
    self.session = new JournaledSession(parts, journal, record)
    return { session: self.session, isNew: !record }
  }

  private constructor(
    parts: JournaledSessionParts,
    journal: SessionJournal,
    found: Awaited<ReturnType<SessionJournal['find']>>,
  ) {
    this.#parts = parts
    this.#journal = journal
    this.requestId = parts.requestId
    this.#state = found?.last.state ?? 'intake'
    this.#from = found?.from
    this.#task = namedAs(parts.tasks(parts.session), found?.first)
    this.#governor = parts.govern({
      audit: journal,
      payloads: journal,
      approvals: lazyApprovals(() => parts.signer.approvals(journal)),
      tasks: [this.#task],
      observe: (item) => this.#observe(item),
      delegates: (requestId) => this.#findDelegates(requestId),
    })
  }

  async #begin(): Promise<void> {
    const { session } = this.#parts
    const { sessionId, agent } = session
    const opening = await this.#governor.open(this.#task, {
      ...this.#init(),
      request_id: this.requestId,
      trace_id: traceIdOf(session),
    })
    if (opening.type === 'opened') return
    const [first = reason('RUN_ERROR'), ...rest] = opening.result.reasons
    const message = `The session ${sessionId} of "${agent.name}" was refused: ${first.code}.`
    throw new GovernanceError(message, [first, ...rest])
  }

  #init(): { identity: Identity; input: JsonValue; parent_trace_id: string | undefined } {
    const { session } = this.#parts
    const caller = session.callers?.at(-1)
    return {
      identity: sessionIdentity(session),
      input: toCanonical(session.input),
      parent_trace_id: caller && traceIdOf(caller),
    }
  }

  /** Returns the requests of the sessions that worked for this one, with what is needed to undo their writes. */
  async #findDelegates(requestId: string): Promise<readonly Delegate[]> {
    const { session, ending, tasks } = this.#parts
    const { delegates, toolsOf } = session
    // A request with delegates begins before those of its subagents (`openRequest` in children/tools.ts).
    const list = (await delegates?.({ requestId, from: this.#from ?? 0 })) ?? []
    this.#delegates = new Map(list.map((one) => [one.requestId, one]))
    return list.map(({ requestId: request_id, threadId, agent, isActive }) => {
      if (!agent || !toolsOf) return { request_id, task: undefined, isActive }
      const { rootId, tenant, owner } = session
      const place = { threadId, rootId, tenant, owner, agent, sessionId: request_id, input: '' }
      const delegate = { ...place, tools: toolsOf(agent) }
      ending.set(request_id, delegate)
      return { request_id, task: tasks(delegate), isActive }
    })
  }

  #observe({ state, request_id }: JournalItem): void {
    if (request_id !== this.requestId) return
    this.#state = state
  }

  async admit(call: Call, answer?: ApprovalAnswer): Promise<Admission> {
    const { id, tool, args, sent, turnId, toolCallId = id } = call
    const admission: Admission = this.#isOpen
      ? await this.#governor.admit(this.requestId, { id, tool, args, sent }, answer)
      : { type: 'deny', reasons: [this.#endingReason()] }
    if (admission.type === 'allow') this.#admitted.set(id, toolCallId)
    const place = { turnId, toolCallId, at: this.#timestamp() }
    this.#events.push(...admissionEvents(admission, place))
    return admission
  }

  /**
   * Whether the request is still open. A request counts as closed as soon as it begins to end, even if a
   * crash interrupted its end.
   */
  get #isOpen(): boolean {
    return this.#state === 'plan' || this.#state === 'execute'
  }

  #endingReason(): Reason {
    return reason('STATE_CONFLICT', this.requestId, 'the session is being ended')
  }

  async settle(
    callId: string,
    outcome: GovernedOutcome,
    turnId: string,
    earlier?: Parameters<SessionGovernor['settle']>[3],
  ): Promise<Settlement> {
    if (earlier && !this.#admitted.has(callId)) await this.#admitAgain(callId, earlier)
    const settlement = await this.#governor.settle(this.requestId, callId, outcome)
    const toolCallId = this.#admitted.get(callId) ?? earlier?.toolCallId ?? callId
    this.#admitted.delete(callId)
    if (settlement.type === 'done') {
      const place = { turnId, toolCallId, at: this.#timestamp() }
      this.#events.push(evidenceEvent(settlement.evidence, place))
    }
    return settlement
  }

  /**
   * Admits a read again that was admitted before this governor was opened. The start of a read is not
   * recorded in the journal, so this governor does not know the call.
   */
  async #admitAgain(
    id: string,
    { tool, args }: { readonly tool: string; readonly args: JsonValue },
  ): Promise<void> {
    const state = await this.#governor.state(this.requestId)
    if (state?.calls.get(id)?.status === 'started') return
    const { type } = await this.#governor.admit(this.requestId, { id, tool, args })
    if (type === 'allow') return
    throw new GovernanceError(`The call ${id} of "${tool}" was not admitted before.`, [
      reason('STATE_CONFLICT', id, type),
    ])
  }

  recoverCall(callId: string): Promise<'applied' | 'absent' | 'in_doubt' | undefined> {
    return this.#governor.recoverCall(this.requestId, callId)
  }

  async settleInDoubt(callId: string, found: 'applied' | 'absent'): Promise<void> {
    const { calls } = (await this.#governor.state(this.requestId)) ?? {}
    if (calls?.get(callId)?.effect !== 'in_doubt') return
    await this.#governor.settleInDoubt(this.requestId, callId, found)
  }

  async settleLate(callId: string, outcome: GovernedOutcome, turnId: string): Promise<boolean> {
    if (!this.#isOpen) return false
    const { calls } = (await this.#governor.state(this.requestId)) ?? {}
    if (calls?.get(callId)?.effect !== 'in_doubt') return false
    await this.settle(callId, outcome, turnId)
    return true
  }

  async deliver(candidate: JsonValue): Promise<SessionDelivery> {
    if (!this.#isOpen) return this.#continueEnd()
    const judgement = await this.#ending(() =>
      this.#governor.judge(this.requestId, toCanonical(candidate)),
    )
    if (judgement.type === 'failing') return { type: 'failing', ...judgement.failure }
    this.#note(judgement.type, judgement.type === 'repair' ? judgement.why : [])
    return judgement
  }

  /** Returns the judgement of an earlier attempt to end the request, which a crash interrupted. */
  async #continueEnd(): Promise<SessionDelivery> {
    const state = await this.#governor.state(this.requestId)
    if (state?.delivered) {
      this.#note('delivered', [])
      return { type: 'delivered' }
    }
    const why = state?.why ?? []
    return { type: 'failing', reasons: why.length > 0 ? why : [this.#endingReason()] }
  }

  async fail(
    code: string,
    message: string,
    options: { readonly leavesWrites?: boolean } = {},
  ): Promise<FailedSession | undefined> {
    const why = reason(toReasonCode(code), code, message)
    const result = await this.#ending(() => this.#governor.cancel(this.requestId, why, options))
    if (result.state === 'deliver') return undefined
    const { reasons, undo } = result
    this.#note('fail_safe', reasons)
    const own = (await this.#governor.state(this.requestId))?.undo
    const writes: FailedWrite[] = []
    for (const one of undo) {
      const isOwn = own?.has(`${one.request_id}/${one.call}`) === true
      writes.push({ ...one, ...(await this.#makerOf(one)), isOwn })
    }
    return { reasons, writes }
  }

  /** Returns who made a write, and its arguments. */
  async #makerOf({
    request_id,
    call,
  }: Undo): Promise<Pick<FailedWrite, 'threadId' | 'agent' | 'arguments'>> {
    const { session } = this.#parts
    const delegate = this.#delegates.get(request_id)
    const { threadId, agentName: agent } = delegate ?? {
      threadId: session.threadId,
      agentName: session.agent.name,
    }
    const record = (await this.#governor.state(request_id))?.calls.get(call)
    const text = record && (await this.#journal.get(record.args_hash))
    return { threadId, agent, arguments: text === undefined ? null : parseJson(text) }
  }

  async #undoDecided(decision: WriteDecision): Promise<Pick<Undo, 'status' | 'error'>> {
    const { requestId, call, found, by } = decision
    const task = defineTaskClass({ name: 'undo', tools: [], needs: [], verifiers: [] })
    const actor = { type: 'human', id: by } as const
    const result = await this.#ending(() =>
      this.#governor.undoDecided(
        task,
        { ...this.#init(), request_id: this.requestId },
        { request_id: requestId, call, found, by: actor },
      ),
    )
    return result.undo[0] ?? { status: 'done' }
  }

  /** Adds the event about the delivery. */
  #note(decision: 'delivered' | 'repair' | 'fail_safe', reasons: readonly Reason[]): void {
    this.#events.push(deliveryEvent(decision, reasons, this.#timestamp()))
  }

  async #ending<T>(end: () => Promise<T>): Promise<T> {
    const { ending, session } = this.#parts
    ending.set(this.requestId, session)
    try {
      const [ended] = await Promise.allSettled([end()])
      // The governor answers also when its log cannot be written. But a session ends only with what is in the log.
      const [unwritten] = this.#unwritten.splice(0)
      if (unwritten !== undefined) throw unwritten
      if (ended.status === 'rejected') throw ended.reason
      return ended.value
    } finally {
      ending.delete(this.requestId)
      for (const id of this.#delegates.keys()) ending.delete(id)
    }
  }

  async #flush(commit: NonNullable<GovernedSession['commit']>): Promise<void> {
    try {
      await commit(this.takeWrites())
    } catch (error) {
      this.#unwritten.push(error)
      throw error
    }
  }

  takeWrites(): GovernanceWrites {
    const events = this.#events
    this.#events = []
    return { ...this.#journal.take(), events }
  }

  #timestamp(): string {
    return new Date(this.#parts.clock.now()).toISOString()
  }
}

function parseJson(text: string): JsonValue {
  return JSON.parse(text) as JsonValue
}

/**
 * Creates the object that checks approvals only when it is first used, because most sessions get no token.
 */
function lazyApprovals(make: () => Approvals): Approvals {
  let approvals: Approvals | undefined
  const get = (): Approvals => (approvals ??= make())
  return {
    redeem: (tokens, request) => get().redeem(tokens, request),
    checkGrant: async (grant, request) =>
      (await get().checkGrant?.(grant, request)) ?? {
        ok: false,
        reason: reason('APPROVAL_INVALID', request.action.tool, 'Grants are not accepted here.'),
      },
  }
}

/**
 * Returns the task class (the rules for the session) under the name that the request was opened with. If the
 * agent's task class has changed while the session waited, the new rules are applied under the old name.
 */
function namedAs(task: TaskClass, first: Envelope | undefined): TaskClass {
  const data = first?.metadata?.['uaicp:data'] as { readonly task?: string } | undefined
  const name = data?.task ?? task.name
  return name === task.name ? task : defineTaskClass({ ...task, name })
}

/** Replaces lone surrogates, which texts of models and people may contain and canonical JSON rejects. */
function toCanonical(value: JsonValue): JsonValue {
  try {
    canonicalJson(value)
    return value
  } catch {
    const copy: unknown = JSON.parse(JSON.stringify(value), (_key, member: unknown) =>
      typeof member === 'string' ? member.replace(/[\ud800-\udfff]/gu, '\u{FFFD}') : member,
    )
    return copy as JsonValue
  }
}

/**
 * Returns the reason code for the audit log. A code that is not in `REASON_CODES` becomes CANCELLED or
 * RUN_ERROR; the caller adds the original code as the subject.
 */
function toReasonCode(code: string): ReasonCode {
  const reason = REASON_CODES.find((one) => one === code)
  return reason ?? (CANCELLING.has(code) ? 'CANCELLED' : 'RUN_ERROR')
}

const CANCELLING: ReadonlySet<string> = new Set(['stopped', 'terminated', 'cancelled'])
