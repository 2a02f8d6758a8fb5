import { isPlainObject, type JsonValue } from '@skein/base'
import { AgentPaths } from './agent-path.ts'
import { load, type ApiContext } from './api-context.ts'
import { type QuestionPlace } from './open-question.ts'
import { APPROVAL_GIVEN } from './partial-approvals.ts'
import { questionItem, variablesItem, type WaitingQuestion } from './waiting-item.ts'
import { sentenceOf } from './waiting-sentence.ts'
import { RuntimeError } from '../contract/error.ts'
import type { RuntimeEvent } from '../contract/event.ts'
import type { WaitingDetail, WaitingItem } from '../contract/waiting-item.ts'
import { type OpenInterrupt, type PendingVariables } from '../state/kernel-state.ts'
import { openForPeople } from '../state/questions.ts'
import { openVariables } from '../state/variables.ts'

/** The largest number of pieces of evidence that are shown with a decision. */
const MAX_EVIDENCE = 100

/** Reads one item from the log, where it stays after it was answered. */
export async function waitingDetail(
  context: ApiContext,
  { threadId, interruptId }: QuestionPlace,
): Promise<WaitingDetail> {
  const { head, state } = await load(context, threadId)
  const path = await new AgentPaths(context).of(head)
  const pending = state.variables.get(interruptId)
  if (pending) return variablesDetail(context, { head, state, path }, pending)
  const log = (await context.store.events(threadId)).map(({ event }) => event)
  const place = log.findIndex(
    (event) => event.type === 'interrupt_opened' && event.interrupt.id === interruptId,
  )
  const opening = log[place]
  if (opening?.type !== 'interrupt_opened' || !PEOPLE.has(opening.interrupt.kind))
    throw new RuntimeError(`Thread ${threadId} has no request ${interruptId}.`, {
      code: 'INTERRUPT_NOT_FOUND',
      hint: 'It may belong to another thread; `inbox.list` lists what is open.',
    })
  const { interrupt, turnId, at: openedAt, expiresAt, effectId } = opening
  const open: OpenInterrupt = {
    interrupt,
    turnId,
    openedAt,
    expiresAt,
    effectId,
    isDetached: false,
    isDropped: false,
    write: opening.write,
    answer: undefined,
    answeredAt: undefined,
    answeredBy: undefined,
    attachments: [],
  }
  const item = questionItem(context, { head, state, open, path })
  const answerEvent = log.find(
    (event) => event.type === 'interrupt_answered' && event.interruptId === interruptId,
  )
  const change = log.find(
    (event) => event.type === 'call_changed' && event.toolCallId === interrupt.toolCallId,
  )
  const isOpen = openForPeople(state).some((one) => one.interrupt.id === interruptId)
  const isLate = expiresAt !== undefined && Date.parse(expiresAt) <= context.clock.now()
  const rollback = item.request?.action.rollback
  return {
    ...item,
    status: answerEvent ? 'decided' : isOpen && !isLate ? 'waiting' : 'over',
    sentence: sentenceOf(context, item),
    undo: (rollback && rollback.type !== 'impossible' ? rollback : null) as JsonValue, // the log is JSON
    evidence: log
      .slice(0, place)
      .flatMap((event) => (event.type === 'evidence_added' ? [event] : []))
      .slice(-MAX_EVIDENCE)
      .map(({ evidenceId, kind, at, summary, toolCallId }) => ({
        evidenceId,
        kind,
        at,
        summary,
        toolCallId,
      })),
    approvedBy: log.flatMap((event) => {
      if (event.type !== 'custom_event' || event.name !== APPROVAL_GIVEN) return []
      const { data, at } = event
      const isOwn = isPlainObject(data) && data['interruptId'] === interruptId
      return isOwn ? [{ by: String(data['by']), at }] : []
    }),
    decision: decisionOf(answerEvent, change),
  }
}

/** Returns a request for variables, also after someone has provided the values, which are left out. */
function variablesDetail(
  context: ApiContext,
  found: Omit<WaitingQuestion, 'open'>,
  { requested, provided }: PendingVariables,
): WaitingDetail {
  const item = variablesItem(context, found, requested)
  const isOpen = openVariables(found.state, context.clock.now()).some(
    (one) => one.requested === requested,
  )
  const provision = provided && ({ type: 'provided', at: provided.at, by: provided.by } as const)
  return {
    ...item,
    status: provision ? 'decided' : isOpen ? 'waiting' : 'over',
    sentence: sentenceOf(context, item),
    undo: null,
    evidence: [],
    approvedBy: [],
    decision: provision,
  }
}

function decisionOf(
  answered: RuntimeEvent | undefined,
  changed: RuntimeEvent | undefined,
): WaitingDetail['decision'] {
  if (answered?.type !== 'interrupt_answered') return undefined
  const { answer, at, answeredBy: by } = answered
  return {
    type: answer.type,
    at,
    by,
    reason: 'reason' in answer ? answer.reason : undefined,
    changedTo: changed?.type === 'call_changed' ? changed.changedTo : undefined,
  }
}

const PEOPLE: ReadonlySet<string> = new Set<WaitingItem['kind']>(['approval', 'input', 'in_doubt'])
