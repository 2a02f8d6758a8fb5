import { canonicalJson, type Clock, type JsonValue } from '@skein/base'
import {
  type Admission,
  type ApprovalAnswer,
  type Approvals,
  type GovernedOutcome,
  defineTaskClass,
  type Delivery,
  type Envelope,
  GovernanceError,
  type Governor,
  type GovernorOptions,
  type JournalItem,
  reason,
  type Reason,
  REASON_CODES,
  type ReasonCode,
  type Settlement,
  type State,
  type TaskClass,
} from '@skein/governance'
import type { RuntimeEvent } from '../contract/event.ts'
import type { Store } from '../store/store.ts'
import type { ApprovalDesk } from './approval-desk.ts'
import {
  admissionEvents,
  deliveryEvent,
  evidenceEvent,
  sessionIdentity,
  SessionJournal,
  traceIdOf,
} from './session-journal.ts'
import type { GovernanceWrites, GovernedSession, SessionGovernor } from './session-governors.ts'

/** The parts from which a `JournaledSession` is built. */
export interface JournaledSessionParts {
  readonly session: GovernedSession
  readonly requestId: string
  readonly store: Store
  readonly clock: Clock
  readonly desk: ApprovalDesk
  readonly task: TaskClass
  readonly ending: Map<string, GovernedSession>
  readonly govern: (
    parts: Pick<GovernorOptions, 'audit' | 'payloads' | 'approvals' | 'tasks' | 'observe'>,
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
  #isClosed: boolean

  /** Continues the session's request from its records in the audit log (its journal), or opens a new request. */
  static async open(parts: JournaledSessionParts): Promise<SessionGovernor> {
    const { store, session, requestId } = parts
    const opened: { session?: JournaledSession } = {}
    const journal = new SessionJournal({
      store,
      tree: session.rootId,
      requestId,
      flush: session.commit && (async () => session.commit?.(opened.session!.takeWrites())),
    })
    const found = await journal.find()
    opened.session = new JournaledSession(parts, journal, found)
    if (!found) await opened.session.#begin()
    return opened.session
  }

  private constructor(
    parts: JournaledSessionParts,
    journal: SessionJournal,
    found: { readonly first: Envelope; readonly last: Envelope } | undefined,
  ) {
    this.#parts = parts
    this.#journal = journal
    this.requestId = parts.requestId
    this.#state = found?.last.state ?? 'intake'
    this.#isClosed = found !== undefined && isEnd(found.last.metadata?.['uaicp:event'])
    this.#governor = parts.govern({
      audit: journal,
      payloads: journal,
      approvals: lazyApprovals(() => parts.desk.approvals(journal)),
      tasks: [namedAs(parts.task, found?.first)],
      observe: (item) => this.#observe(item),
    })
  }

  async #begin(): Promise<void> {
    const { session, task } = this.#parts
    const opening = await this.#governor.open(task, {
      identity: sessionIdentity(session),
      input: toCanonical(session.input),
      request_id: this.requestId,
      trace_id: traceIdOf(session),
    })
    if (opening.type === 'opened') return
    const [first = reason('RUN_ERROR'), ...rest] = opening.result.reasons
    const message = `The session ${session.sessionId} of "${session.agent.name}" was refused: ${first.code}.`
    throw new GovernanceError(message, [first, ...rest])
  }

  #observe({ type, state }: JournalItem): void {
    this.#state = state
    this.#isClosed ||= isEnd(type)
  }

  async admit(call: Call, answer?: ApprovalAnswer): Promise<Admission> {
    const { id, tool, args, turnId, toolCallId = id } = call
    const admission: Admission = this.#isOpen
      ? await this.#governor.admit(this.requestId, { id, tool, args }, answer)
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

  settleInDoubt(callId: string, found: 'applied' | 'absent'): Promise<void> {
    return this.#governor.settleInDoubt(this.requestId, callId, found)
  }

  async deliver(candidate: JsonValue): Promise<Delivery> {
    const delivery = await this.#ending(() =>
      this.#isOpen
        ? this.#governor.deliver(this.requestId, toCanonical(candidate))
        : // A crash interrupted an earlier attempt to end the request, so the request is ended now.
          this.#end(this.#endingReason()),
    )
    this.#events.push(deliveryEvent(delivery, this.#timestamp()))
    return delivery
  }

  async fail(code: string, message: string): Promise<void> {
    if (this.#isClosed) return
    const why = reason(toReasonCode(code), code, message)
    const delivery = await this.#ending(() => this.#end(why))
    this.#events.push(deliveryEvent(delivery, this.#timestamp()))
  }

  /** Ends the request; if it has already ended, returns its result. */
  async #end(why: Reason): Promise<Delivery> {
    const result = await this.#governor.cancel(this.requestId, why)
    return result.state === 'deliver'
      ? { type: 'delivered', result }
      : { type: 'fail_safe', result }
  }

  async #ending<T>(end: () => Promise<T>): Promise<T> {
    const { ending, session } = this.#parts
    ending.set(this.requestId, session)
    try {
      return await end()
    } finally {
      ending.delete(this.requestId)
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

function isEnd(event: unknown): boolean {
  return event === 'delivered' || event === 'failed_safe'
}

/**
 * Creates the object that checks approvals only when it is first used, because most sessions get no token.
 */
function lazyApprovals(make: () => Approvals): Approvals {
  let made: Approvals | undefined
  const get = (): Approvals => (made ??= make())
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
    const repaired: unknown = JSON.parse(JSON.stringify(value), (_key, member: unknown) =>
      typeof member === 'string' ? member.replace(/[\ud800-\udfff]/gu, '\u{FFFD}') : member,
    )
    return repaired as JsonValue
  }
}

/**
 * Returns the reason code for the audit log. A code that is not in `REASON_CODES` becomes CANCELLED or
 * RUN_ERROR; the caller adds the original code as the subject.
 */
function toReasonCode(code: string): ReasonCode {
  const known = REASON_CODES.find((one) => one === code)
  return known ?? (CANCELLING.has(code) ? 'CANCELLED' : 'RUN_ERROR')
}

const CANCELLING: ReadonlySet<string> = new Set(['stopped', 'terminated', 'cancelled'])
