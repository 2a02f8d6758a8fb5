import type { ChildReport } from '../contract/event.ts'
import {
  type CallState,
  findLateEffect,
  type KernelState,
  type OpenInterrupt,
} from './kernel-state.ts'
import type { LateResult } from '@skein/threads'
import type { CallEvent } from './fold-call.ts'
import { argumentsToRun, type FoundCall, findCall, callOfId } from './calls.ts'

/**
 * Applies a result that came when the outcome of its call was not known any more. It answers every question about the
 * call or the effect. If the call has no outcome, the next work on the thread ends it with this result; otherwise the
 * model gets a message, because the outcome that it has seen stays as it is.
 */
export function foldLate(
  state: KernelState,
  { at, toolCallId, outcome, result, effectId }: Extract<CallEvent, { type: 'late_result' }>,
): void {
  const place = effectId === undefined ? findCall(state, toolCallId) : undefined
  const subject = effectId === undefined ? place?.call : findLateEffect(state, effectId, toolCallId)
  if (!subject || !isNewsOf(subject, outcome)) return
  subject.late = { outcome, result }
  const open = state.interrupts.get(subject.interruptId ?? '')
  if (open && !open.answer) {
    open.answer = { type: 'result', value: outcome === 'success' ? 'applied' : 'unknown' }
    open.answeredAt = at
  }
  if (!place?.call.outcome) return
  closeDetached(state, place.call)
  addLateNews(state, place, at)
}

/**
 * Whether a late result says more than the log: the log has no other late result of the call, unless that one failed,
 * and no outcome that the tool itself has reported. A call that ran twice may report twice.
 */
export function isNewsOf(
  { late, ...subject }: Pick<CallState, 'late'> | CallState,
  outcome: LateResult['outcome'],
): boolean {
  if (late && (late.outcome === 'success' || outcome !== 'success')) return false
  return !('outcome' in subject) || subject.outcome?.type !== 'done' || subject.isFound
}

/** Tells the model how a call really ended whose outcome it has seen otherwise. */
export function addLateNews(state: KernelState, found: FoundCall, at: string): void {
  const { outcome, result } = found.call.late!
  const words = typeof result === 'string' ? result : (JSON.stringify(result) ?? '')
  const sentence =
    outcome === 'success' ? `It took effect. Its result: ${words}` : `It failed: ${words}`
  addNews(state, found, { at, news: `${WAS_UNKNOWN} has ended after all. ${sentence}` })
}

/** Queues a message for the model whose write was undone, because its results say that the write happened. */
export function foldUndone(
  state: KernelState,
  { at, call: callId, status, error }: Extract<CallEvent, { type: 'write_undone' }>,
): void {
  const place = callOfId(state, callId)
  const because = error === undefined ? '' : `: ${error}`
  const news = {
    done: ' was undone, because the session failed.',
    failed: ` had to be undone, because the session failed, and that failed${because}.`,
    unknown: ` had to be undone, because the session failed, and may be undone or not${because}.`,
    skipped: undefined,
    manual: undefined,
    impossible: undefined,
    in_doubt: undefined,
  }[status]
  if (place && news !== undefined) addNews(state, place, { at, news, kind: 'undone' })
}

/** Applies what a person has found out about a call that has ended with an unknown outcome. */
export function foldFound(
  state: KernelState,
  { interrupt, answer }: OpenInterrupt,
  at: string,
): void {
  const place = findCall(state, interrupt.toolCallId)
  if (!place || place.call.interruptId !== interrupt.id) return
  closeDetached(state, place.call)
  const value = answer?.type === 'result' ? answer.value : undefined
  if (value !== 'applied' && value !== 'absent') return
  place.call.found = value
  const effect = value === 'applied' ? 'took effect' : 'had no effect'
  addNews(state, place, { at, news: `${WAS_UNKNOWN} ${effect}. A person has found that out.` })
}

const WAS_UNKNOWN = ', whose outcome was unknown,'

function closeDetached({ interrupts }: KernelState, call: CallState): void {
  if (call.interruptId !== undefined) interrupts.delete(call.interruptId)
  call.interruptId = undefined
}

/** How many characters of a call's arguments a message about the call repeats. */
const MAX_SHOWN = 500

/** Queues a message about a call for the model that made it. The result that the model got before stays as it is. */
function addNews(
  state: KernelState,
  { call, entry }: FoundCall,
  { at, news, kind = 'news' }: { at: string; news: string; kind?: 'news' | 'undone' },
): void {
  const { toolName } = call.call
  const args = JSON.stringify(argumentsToRun(call))
  const excerpt = args.length > MAX_SHOWN ? `${args.slice(0, MAX_SHOWN)}…` : args
  const text = `[News of an earlier call] "${toolName}" with ${excerpt}${news}`
  // A person's finding and a late result may both come, and a failed attempt may be followed by another one.
  const queueId = `${entry.message.id}.${call.call.toolCallId}.${kind}.${state.seq}`
  state.news.push({
    type: 'message_queued',
    at,
    queueId,
    role: entry.side === 'a' ? 'user' : 'assistant',
    message: { id: queueId, type: 'user', timestamp: at, content: [{ type: 'text', text }] },
    isSilent: true,
    metadata: { kind: 'late_result', for: entry.side },
  })
}

/**
 * Queues the report of a child whose waiting call has ended, because the session was stopped meanwhile.
 * Otherwise the child's result would be lost.
 */
export function queueReport(
  state: KernelState,
  { at, answer }: Extract<CallEvent, { type: 'interrupt_answered' }>,
  { queueId, reference, opening, attachments }: ChildReport,
): void {
  if (state.queuedIds.has(queueId)) return
  const result = answer as { readonly value?: unknown; readonly message?: string }
  const text = `${opening}${result.message ?? String(result.value ?? '')}`
  state.queuedIds.set(queueId, state.seq)
  state.queue.push({
    type: 'message_queued',
    at,
    queueId,
    role: 'user',
    message: { id: queueId, type: 'user', timestamp: at, content: [{ type: 'text', text }] },
    isSilent: true,
    subagentId: reference,
    attachments,
  })
}
