import type { EventOf } from '../contract/event-of.ts'
import { isPlainObject } from '@skein/base'
import type { RuntimeEvent } from '../contract/event.ts'
import type { ThreadHead } from './head.ts'
import type { WaitingKind, WaitingPlace, WaitingQuery, WaitingRow } from './waiting-query.ts'
import { isPart } from './select-threads.ts'
import { labelText } from './storable-text.ts'

/** A question without the facts about its thread. */
type Question = Pick<WaitingRow, 'interruptId' | 'subject' | 'kind' | 'openedAt' | 'until'>

/** What events do to the questions of a thread. First the earlier questions are closed, then the new ones opened. */
export interface WaitingChange {
  readonly threadId: string
  readonly closesAll: boolean
  /** Whether requests for variables are closed: they expire without an event, and then the thread counts none. */
  readonly closesRequests: boolean
  /** The ids of closed questions. */
  readonly closedIds: readonly string[]
  /** The subjects whose questions are closed. */
  readonly closedSubjects: readonly string[]
  readonly opened: readonly WaitingRow[]
  /** The owner and the agent of the thread, if they change: the open questions name them too. */
  readonly labels: Pick<WaitingRow, 'owner' | 'agent'> | undefined
}

/** The kinds of interrupts that people and clients answer. */
const FOR_PEOPLE: Readonly<Record<string, WaitingKind>> = {
  approval: 'approval',
  input: 'input',
  in_doubt: 'in_doubt',
}

/** The events that open or close questions. Most commits have none of them. */
const ABOUT_QUESTIONS: ReadonlySet<string> = new Set<RuntimeEvent['type']>([
  'interrupt_opened',
  'interrupt_answered',
  'late_result',
  'tool_execution_end',
  'effect_started',
  'effect_ended',
  'variables_requested',
  'variables_provided',
  'variables_settled',
  'thread_terminated',
  'thread_erased',
])

/** Returns what a commit with these events changes in the questions of a thread; undefined if nothing. */
export function waitingChange(
  events: readonly RuntimeEvent[],
  head: CountedRow,
  before: CountedRow | undefined,
): WaitingChange | undefined {
  const isSame =
    !before ||
    (before.owner === head.owner &&
      before.agent === head.agent &&
      (before.waiting === 0 || head.waiting > 0))
  if (isSame && !events.some(({ type }) => ABOUT_QUESTIONS.has(type))) return undefined
  const questions = new QuestionLog()
  for (const event of events) questions.push(event)
  return questions.change(head, before)
}

/**
 * Follows the questions through a log, as the fold of a thread does: `interrupt_opened` and `variables_requested`
 * open one; an answer, the end of the call or effect, a later question about the same, and the end of the thread
 * close it.
 */
export class QuestionLog {
  readonly #opened = new Map<string, Question>()
  readonly #closedIds = new Set<string>()
  readonly #closedSubjects = new Set<string>()
  #closesAll = false
  #version: number | undefined

  /** Reads the next event of a stored log, which must be read from its beginning. */
  pushStored(json: string): void {
    if (!mayConcernQuestions(json)) return
    const event = JSON.parse(json) as RuntimeEvent
    if (event.type === 'thread_created') this.#version ??= event.version
    this.push(this.#version === 1 ? inDoubtAsKind(event) : event)
  }

  push(event: RuntimeEvent): void {
    switch (event.type) {
      case 'interrupt_opened': {
        const { interrupt, at, effectId } = event
        const kind = Object.hasOwn(FOR_PEOPLE, interrupt.kind)
          ? FOR_PEOPLE[interrupt.kind]
          : undefined
        const subject =
          effectId === undefined ? callSubject(interrupt.toolCallId) : effectSubject(effectId)
        this.#closeSubject(subject)
        if (kind) this.#open({ interruptId: interrupt.id, subject, kind, at, until: null })
        return
      }
      case 'interrupt_answered':
        return this.#close(event.interruptId)
      case 'late_result':
        return this.#closeSubject(
          event.effectId === undefined
            ? callSubject(event.toolCallId)
            : effectSubject(event.effectId),
        )
      case 'tool_execution_end':
        return this.#closeSubject(callSubject(event.toolCallId))
      case 'effect_started':
      case 'effect_ended':
        return this.#closeSubject(effectSubject(event.effectId))
      case 'variables_requested': {
        const { requestId: interruptId, at, expiresAt } = event
        const subject = labelText(`variables ${interruptId}`)
        const until = Date.parse(expiresAt) || 0
        return this.#open({ interruptId, subject, kind: 'variables', at, until })
      }
      case 'variables_provided':
      case 'variables_settled':
        return this.#close(event.requestId)
      case 'thread_terminated':
      case 'thread_erased':
        this.#opened.clear()
        this.#closesAll = true
        return
      default:
        event satisfies NoQuestion
    }
  }

  /** Returns the questions that are open after the events, as rows of the thread. */
  rows({ id, tenant, owner, agent, rootId }: Row): readonly WaitingRow[] {
    return [...this.#opened.values()].map((question) => ({
      ...question,
      threadId: id,
      tenant,
      owner,
      agent,
      rootId,
    }))
  }

  /** Returns what a commit with these events changes for a thread; undefined if nothing. */
  change(head: CountedRow, before: CountedRow | undefined): WaitingChange | undefined {
    const isMoved =
      before !== undefined && (before.owner !== head.owner || before.agent !== head.agent)
    const change: WaitingChange = {
      threadId: head.id,
      closesAll: before !== undefined && this.#closesAll,
      closesRequests: before !== undefined && before.waiting > 0 && head.waiting === 0,
      // A new thread has no earlier questions.
      closedIds: before ? [...this.#closedIds] : [],
      closedSubjects: before ? [...this.#closedSubjects] : [],
      opened: this.rows(head),
      labels: isMoved ? { owner: head.owner, agent: head.agent } : undefined,
    }
    const { closesAll, closesRequests, closedIds, closedSubjects, opened } = change
    const isEmpty =
      !closesAll &&
      !closesRequests &&
      closedIds.length + closedSubjects.length + opened.length === 0
    return isEmpty && !isMoved ? undefined : change
  }

  #open({ at, ...question }: Omit<Question, 'openedAt'> & { readonly at: string }): void {
    const interruptId = labelText(question.interruptId)
    this.#opened.set(interruptId, { ...question, interruptId, openedAt: Date.parse(at) || 0 })
  }

  #close(id: string): void {
    const interruptId = labelText(id)
    this.#opened.delete(interruptId)
    this.#closedIds.add(interruptId)
  }

  #closeSubject(subject: string): void {
    for (const [id, question] of this.#opened)
      if (question.subject === subject) this.#opened.delete(id)
    this.#closedSubjects.add(subject)
  }
}

type Row = Pick<ThreadHead, 'id' | 'tenant' | 'owner' | 'agent' | 'rootId'>
type CountedRow = Row & Pick<ThreadHead, 'waiting'>

// Ids of calls come from models, so they are cleaned like labels: some databases refuse NUL.
function callSubject(toolCallId: string): string {
  return labelText(`call ${toolCallId}`)
}

function effectSubject(effectId: string): string {
  return labelText(`effect ${effectId}`)
}

/** In logs of version 1, a question about a call in doubt has the kind of a question to a client (`eventVersions`). */
function inDoubtAsKind(event: RuntimeEvent): RuntimeEvent {
  if (event.type !== 'interrupt_opened' || event.interrupt.kind !== 'input') return event
  const { request } = event.interrupt
  if (!isPlainObject(request) || request['type'] !== 'in_doubt') return event
  return { ...event, interrupt: { ...event.interrupt, kind: 'in_doubt' } }
}

/** Whether the text of a stored event can be about a question, so that most events of a log need not be parsed. */
function mayConcernQuestions(json: string): boolean {
  const type = /^\{"type":"([a-z_]+)"/.exec(json)?.[1]
  return type === undefined || type === 'thread_created' || ABOUT_QUESTIONS.has(type)
}

/** Selects and sorts questions for a query. */
export function selectWaiting(
  rows: Iterable<WaitingRow>,
  query: WaitingQuery,
): readonly WaitingRow[] {
  const { threadIdPart, interruptIdPart, openAt, after } = query
  const names = ['tenant', 'owner', 'agent', 'rootId', 'threadId', 'interruptId', 'kind'] as const
  const matches = (row: WaitingRow): boolean =>
    names.every((name) => query[name] === undefined || row[name] === query[name]) &&
    (threadIdPart === undefined || isPart(threadIdPart, row.threadId)) &&
    (interruptIdPart === undefined || isPart(interruptIdPart, row.interruptId)) &&
    (openAt === undefined || row.until === null || row.until > openAt) &&
    (after === undefined || byPlace(after, row) < 0)
  return [...rows].filter(matches).toSorted(byPlace).slice(0, waitingLimit(query))
}

/** Returns the limit of a query: 50 questions by default, at most 1000. */
export function waitingLimit({ limit = 50 }: WaitingQuery): number {
  return Math.min(Math.max(Math.trunc(limit), 0), 1000)
}

function byPlace(a: WaitingPlace, b: WaitingPlace): number {
  return (
    a.openedAt - b.openedAt ||
    compare(a.threadId, b.threadId) ||
    compare(a.interruptId, b.interruptId)
  )
}

function compare(a: string, b: string): number {
  return a < b ? -1 : a > b ? 1 : 0
}

/** Events that open and close no question. */
// prettier-ignore
type NoQuestion = EventOf<
  'thread_created' | 'thread_updated' | 'status_changed' | 'session_start' | 'session_end' |
  'session_failing' | 'write_undone' | 'undo_decided' | 'message_queued' | 'message_unqueued' |
  'message_added' | 'message_updated' | 'call_changed' | 'message_removed' | 'delivery_changed' |
  'turn_start' | 'turn_end' | 'step_start' | 'step_reset' | 'step_failed' | 'text_delta' |
  'tool_execution_start' | 'call_reset' | 'subagent_created' | 'subagent_updated' |
  'subagent_ended' | 'agent_handoff' | 'context_compacted' | 'gate_decided' | 'error_raised' |
  'model_requested' | 'model_answered' | 'inference_recorded' | 'usage_recorded' |
  'agent_registered' | 'step_end' | 'reasoning_delta' | 'tool_call_delta' |
  'tool_execution_progress' | 'tool_call_hidden' | 'file_written' | 'file_removed' |
  'source_added' | 'evidence_added' | 'custom_event' | 'session_stop_requested' |
  'immediate_done' | 'stop_requested' | 'turn_cut' | 'resume_requested' | 'value_set' |
  'env_set' | 'effect_scheduled' | 'grant_made' | 'grant_revoked'
>
