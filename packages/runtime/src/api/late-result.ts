import { isPlainObject, messageOf } from '@skein/base'
import type { LateOutcome } from '@skein/ai'
import { contentOf } from '@skein/ai/engine'
import type { LateReport } from '../context/environment.ts'
import type { RuntimeEvent } from '../contract/event.ts'
import { type CallState, findLateEffect, type KernelState } from '../state/kernel-state.ts'
import { findCall } from '../state/calls.ts'
import { isStoreError } from '../store/store-error.ts'
import type { ApiContext } from './api-context.ts'
import { type Edit, editThread } from './edit-thread.ts'
import type { LoadedThread } from '../state/fold-cache.ts'
import { waitingCount } from '../state/questions.ts'
import { isNewsOf } from '../state/news.ts'

/** How often, and after what times, a late result is offered again to a store that cannot take it. */
const TRIES = 12
const FIRST_MS = 100
const LONGEST_MS = 30_000

/**
 * Records what a call or an effect has ended with, although the log says that its outcome is unknown, or another
 * process works on the thread now. The result is delivered like a message, so it needs no lease. It settles what is
 * asked about the call. Work on the thread begins only if the call, or the effect, still waits for its outcome.
 */
export async function recordLate(context: ApiContext, report: LateReport): Promise<void> {
  const target = { threadId: report.threadId, point: 'late_result', allowsOver: true }
  for (let tries = 1; ; tries++) {
    try {
      await editThread(context, target, (thread) => lateEdit(context, thread, report))
      return
    } catch (error) {
      const { code } = (error ?? {}) as { readonly code?: unknown }
      if (code === 'THREAD_NOT_FOUND') return // it was removed, and nothing of it may stay
      const mayRecover = isStoreError(error) && error.code.startsWith('STORE_')
      if (!mayRecover || tries === TRIES) return context.report(error, report.threadId)
      const ms = Math.min(FIRST_MS * 2 ** (tries - 1), LONGEST_MS)
      await new Promise<void>((resolve) => context.timers.set(ms, resolve))
    }
  }
}

async function lateEdit(
  context: ApiContext,
  thread: LoadedThread,
  report: LateReport,
): Promise<Edit<void>> {
  const { state } = thread
  if (state.isErased) return { result: undefined }
  return report.effect
    ? lateEffect(context, thread, report, report.effect)
    : lateCall(context, thread, report)
}

async function lateCall(
  context: ApiContext,
  thread: LoadedThread,
  report: LateReport,
): Promise<Edit<void>> {
  const { state } = thread
  const { toolCallId } = report
  const { call, entry } = findCall(state, toolCallId) ?? {}
  const { outcome } = loggedLate(context, report.outcome)
  if (!call || !entry || !isNewsOf(call, outcome)) return { result: undefined }
  const append = [lateEvent(context, report)]
  const head = { waiting: waitingCount(state, context.clock.now()) - asked(state, call) }
  // The next work on the thread ends the call with this result.
  if (!call.outcome)
    return { result: undefined, change: { append, head, wake: { by: context.clock.now() } } }
  // If the session continues, its governor learns of it when the session ends.
  const place = state.places.get(entry.message.id) ?? -1
  const isOver = place < (state.session?.firstEntry ?? Infinity)
  const records = isOver ? await finding(context, thread, report) : {}
  return { result: undefined, change: { append, head }, ...records }
}

async function lateEffect(
  context: ApiContext,
  thread: LoadedThread,
  report: LateReport,
  { effectId }: NonNullable<LateReport['effect']>,
): Promise<Edit<void>> {
  const { state } = thread
  const effect = findLateEffect(state, effectId, report.toolCallId)
  const { outcome } = loggedLate(context, report.outcome)
  if (effect) {
    if (!isNewsOf(effect, outcome)) return { result: undefined }
    const append = [{ ...lateEvent(context, report), effectId }]
    const head = { waiting: waitingCount(state, context.clock.now()) - asked(state, effect) }
    return { result: undefined, change: { append, head, wake: { by: context.clock.now() } } }
  }
  // The attempt was recorded as unknown, and nothing waits for it any more.
  const append = [lateEvent(context, report)]
  const records = await finding(context, thread, report)
  return { result: undefined, change: { append }, ...records }
}

function lateEvent(
  context: ApiContext,
  { turnId, toolCallId, toolName, outcome }: LateReport,
): Extract<RuntimeEvent, { type: 'late_result' }> {
  const at = context.at()
  return { type: 'late_result', at, turnId, toolCallId, toolName, ...loggedLate(context, outcome) }
}

/** Returns 1 if people are asked about the call or the effect, so that the late result answers a question; else 0. */
function asked({ interrupts }: KernelState, { interruptId }: Pick<CallState, 'interruptId'>): 0 | 1 {
  const open = interrupts.get(interruptId ?? '')
  return open && !open.answer && !open.isDropped ? 1 : 0
}

/** Returns the records of the audit log; none if no policy has judged the call. */
async function finding(
  context: ApiContext,
  { head, state: { agent } }: LoadedThread,
  { callId, toolName: tool, outcome, isGoverned }: LateReport,
): Promise<Pick<Edit<void>, 'audit' | 'blobs'>> {
  if (!isGoverned) return {}
  const effect = outcome.type === 'done' ? 'applied' : 'unknown'
  return context.governors.recordFinding({ head, agent, call: callId, tool, found: effect, by: undefined })
}

/** Converts an outcome to the form of the log. A long result is cut, and media are left out. */
function loggedLate(
  { limits: { maxToolResultBytes } }: ApiContext,
  given: LateOutcome,
): { readonly outcome: 'success' | 'failed'; readonly result: unknown } {
  const outcome = given.type === 'done' ? 'success' : 'failed'
  const value = given.type === 'done' ? withoutMedia(given.result) : given.message
  const text = typeof value === 'string' ? value : (JSON.stringify(value) ?? 'null')
  const bytes = Buffer.from(text)
  if (bytes.length <= maxToolResultBytes) return { outcome, result: value }
  // A character that is cut through becomes a replacement character.
  const start = bytes.subarray(0, maxToolResultBytes).toString()
  return {
    outcome,
    result: `${start}\n\n[The result came late; ${bytes.length - maxToolResultBytes} bytes are left out.]`,
  }
}

function withoutMedia(result: unknown): unknown {
  const items: readonly unknown[] = [result].flat()
  const kinds = contentOf(result).map(({ type }) => type)
  if (kinds.every((type) => type === 'text') && !items.some(isFileMark)) return result ?? null
  const texts = items.map((item, place) => {
    if ((kinds[place] ?? 'text') === 'text' && !isFileMark(item)) return item
    return { type: 'text', text: '[A file is left out, because the result came late.]' }
  })
  return Array.isArray(result) ? texts : texts[0]
}

function isFileMark(item: unknown): boolean {
  return isPlainObject(item) && '$file' in item
}

/** Starts `recordLate` without waiting for it. */
export function reportLate(context: ApiContext, report: LateReport): void {
  void recordLate(context, report).catch((error: unknown) =>
    context.report(new Error(messageOf(error), { cause: error }), report.threadId),
  )
}
