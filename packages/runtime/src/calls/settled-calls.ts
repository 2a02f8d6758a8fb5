import type { SettledOutcome, ToolCall, ToolOutcome } from '@skein/ai'
import { statusToParent } from '../thread/parent-list.ts'
import type { DrainContext } from '../context/drain-context.ts'
import type { ResolvedSide } from '../definitions/resolved.ts'
import { answerInDoubt } from '../governance/in-doubt.ts'
import { shownAs } from '../model/file-blocks.ts'
import { callIdOf } from '../state/calls.ts'
import { type Entry, isWaiting, type KernelState } from '../state/kernel-state.ts'
import { endEvent, statusEvents } from './call-events.ts'
import { fileReference } from './result-files.ts'

/**
 * Returns the outcomes of the calls that need not run: outcomes from the log, answers that are an outcome, and
 * `deferred` for calls that still wait. An answer to an approval is not an outcome: the call runs, and the governor
 * reads the answer.
 */
export async function settledCalls(
  context: DrainContext,
  side: ResolvedSide,
  { calls }: Entry,
): Promise<ReadonlyMap<string, ToolOutcome>> {
  const { state } = context
  const outcomes = new Map<string, ToolOutcome>()
  for (const one of calls) {
    const { call, interruptId } = one
    if (one.outcome) outcomes.set(call.toolCallId, one.outcome)
    const open = interruptId === undefined ? undefined : state.interrupts.get(interruptId)
    if (one.outcome || !open) continue
    const { kind, request = null } = open.interrupt
    if (isWaiting(state, one)) {
      const waiting = { kind, request: request as never } // the request was JSON when the call was deferred
      outcomes.set(call.toolCallId, { type: 'deferred', request: waiting })
    } else if (kind !== 'approval' && open.answer) {
      const isInDoubt = kind === 'in_doubt'
      const doubt = isInDoubt ? { request } : undefined
      const answer = await answeredOutcome(context, { call, answer: open.answer, doubt })
      if (!answer) continue
      const outcome = withPictures(state, answer, open.attachments)
      const status = statusEvents(context, side, { call, outcome })
      const settledBy = isInDoubt ? ({ settledBy: 'person' } as const) : {}
      await context.commit('call_end', {
        events: [{ ...endEvent(context, call, outcome), ...settledBy }, ...status],
        others: status.flatMap((changed) => statusToParent(context, changed)),
        kind: 'outcome',
      })
      outcomes.set(call.toolCallId, outcome)
    }
  }
  return outcomes
}

/**
 * Converts an answer to the outcome of its call. Returns undefined when the call has to run again, because a
 * person said that it had no effect before the crash.
 */
async function answeredOutcome(
  context: DrainContext,
  {
    call,
    answer,
    doubt,
  }: {
    readonly call: ToolCall
    readonly answer: object
    /** The question whether a call that was cut off took effect. */
    readonly doubt: { readonly request: unknown } | undefined
  },
): Promise<SettledOutcome | undefined> {
  const { type, value, message, reason } = answer as {
    type: string
    value?: unknown
    message?: string
    reason?: string
  }
  if (doubt) {
    const decision = await answerInDoubt({
      tool: { name: call.toolName },
      callId: callIdOf(context.state, call.toolCallId),
      governor: await context.governor(),
      request: doubt.request,
      answer: value,
    })
    if (decision.type === 'rerun') return undefined
    return decision.type === 'done'
      ? { type: 'done', result: decision.message }
      : { type: 'unknown', message: decision.message }
  }
  if (type === 'result') return { type: 'done', result: value ?? null }
  if (type === 'deny') return { type: 'denied', reason: reason ?? 'It was denied.' }
  return { type: 'error', message: message ?? 'It failed.' }
}

/** Adds the files of a child's result that models can be shown; the text of the result already names all files. */
function withPictures(
  { files }: KernelState,
  outcome: SettledOutcome,
  attachments: readonly string[],
): SettledOutcome {
  const pictures = attachments.flatMap((path) => {
    const file = files.get(path)
    return file && shownAs(file.mediaType) ? [fileReference(file)] : []
  })
  if (outcome.type !== 'done' || pictures.length === 0) return outcome
  return { ...outcome, result: [outcome.result, ...pictures] }
}
