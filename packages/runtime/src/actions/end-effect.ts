import { type JsonValue, messageOf } from '@skein/base'
import type { DrainContext } from '../context/drain-context.ts'
import type { Write } from '../context/write.ts'
import { RuntimeError } from '../contract/error.ts'
import type { EffectEnded, RuntimeEvent } from '../contract/event.ts'
import type { CutOff, InDoubt } from '../governance/in-doubt.ts'
import { afterStored } from '../hooks/hooks.ts'
import { nextCronTime } from '../contract/cron.ts'
import type { EffectRun } from './effect-run.ts'
import { governorWrites } from './effect-gate.ts'

/** How the text about an effect that was cut off begins. */
export const CUT_OFF: Readonly<Record<CutOff, string>> = {
  crash: 'The process died',
  time_limit: 'Its time limit passed',
  stop: 'The thread was stopped',
  cut: 'A new message came',
}

/** Ends a run that was cut off: its outcome was found out, or stays unknown. */
export function endFound(
  context: DrainContext,
  run: EffectRun,
  found: Extract<InDoubt, { type: 'done' | 'unknown' }>,
  { settledBy, cutOff }: { readonly settledBy: 'probe' | 'person'; readonly cutOff: CutOff },
): Promise<void> {
  if (found.type === 'done') return endRun(context, run, { outcome: 'done', settledBy })
  const { name } = run.effect.scheduled
  const error = `${CUT_OFF[cutOff]} while the effect "${name}" ran. Whether it took effect is unknown, and it is not run again.`
  return endRun(context, run, { outcome: 'unknown', error })
}

/** Returns how long to wait before the next attempt; undefined if there is none. */
export function retryAfter({ definition }: EffectRun, attempt: number): number | undefined {
  const { retry } = definition ?? {}
  return retry && attempt < retry.attempts ? retry.backoffMs * 2 ** (attempt - 1) : undefined
}

interface Ending extends Pick<EffectEnded, 'error' | 'settledBy'> {
  readonly outcome: Exclude<EffectEnded['outcome'], 'removed'>
  /** Set when the same run is tried again. */
  readonly retryAfterMs?: number | undefined
  /** The changes that the scheduled effect made in the thread. */
  readonly write?: Write
}

/**
 * Commits the end of a run or of one attempt. After the last attempt, a scheduled effect with a cron expression
 * continues at its next time. If another writer has set a value that the effect read, its changes are not
 * stored, and the attempt has failed.
 */
export async function endRun(context: DrainContext, run: EffectRun, ending: Ending): Promise<void> {
  const { outcome, error, settledBy, retryAfterMs, write = {} } = ending
  const { effectId, cron, timeZone, name } = run.effect.scheduled
  const now = context.environment.clock.now()
  const isRetry = retryAfterMs !== undefined
  // The next cron time is computed from now: after a pause the scheduled effect runs once, not once per missed time.
  const cronAt = cron === undefined ? undefined : nextCronTime(cron, now, timeZone)
  const next = isRetry ? now + retryAfterMs : cronAt
  const endEvent: RuntimeEvent = {
    type: 'effect_ended',
    at: context.at(),
    effectId,
    outcome,
    error,
    runAt: next === undefined ? undefined : new Date(next).toISOString(),
    isRetry: isRetry || undefined,
    settledBy,
  }
  const events = [...(write.events ?? []), endEvent]
  if (!isRetry) {
    if (outcome === 'done') await run.governor?.deliver(null)
    else
      await run.governor?.fail(
        outcome === 'unknown' ? 'EFFECT_UNKNOWN' : 'EFFECT_FAILED',
        error ?? '',
      )
  }
  const code = 'EFFECT_UNKNOWN'
  const message = error ?? ''
  const hint = `Check what "${name}" did. Give it a \`probe\`, or declare it \`idempotent\`, and it is settled without a person.`
  if (outcome === 'unknown')
    events.push({ type: 'error_raised', at: context.at(), code, message, hint })
  let isStored = true
  await context.commit('effect_end', {
    ...write,
    events,
    ...governorWrites(run),
    // A retry after a crash is no progress, or a scheduled effect that kills every process would be repeated for ever.
    kind: isRetry && run.effect.runningEpoch !== context.epoch ? 'change' : 'outcome',
    onConflict: (conflict) => {
      isStored = false
      const failure = { ...endEvent, outcome: 'failed', error: messageOf(conflict) } as const
      // The governor has already written that the run is over, so a governed scheduled effect is not tried again.
      const waitMs = run.governor ? undefined : retryAfter(run, run.effect.attempts)
      const runAt = waitMs === undefined ? undefined : new Date(now + waitMs).toISOString()
      const again = runAt === undefined ? failure : { ...failure, runAt, isRetry: true }
      return { kind: 'outcome', events: [again] }
    },
  })
  if (outcome === 'unknown')
    context.environment.report(new RuntimeError(message, { code, hint }), context.head.id)
  if (isStored && write.events) await afterStored(context, context.agent.a, write.events)
}

/** Commits the question to a person; the scheduled effect waits for the answer. */
export async function askAboutRun(
  context: DrainContext,
  run: EffectRun,
  { kind, request }: { readonly kind: 'approval' | 'in_doubt'; readonly request: JsonValue },
): Promise<void> {
  const { clock, ids, limits } = context.environment
  const { effectId } = run.effect.scheduled
  // Only approvals expire. The question whether the scheduled effect happened stays open until someone answers it.
  const expires = kind === 'approval' ? clock.now() + limits.interruptTtlMs : undefined
  const question: RuntimeEvent = {
    type: 'interrupt_opened',
    at: context.at(),
    turnId: '',
    effectId,
    interrupt: { id: ids(), toolCallId: effectId, kind, request },
    expiresAt: expires === undefined ? undefined : new Date(expires).toISOString(),
  }
  await context.commit('effect_waits', {
    events: [question],
    ...governorWrites(run),
    kind: 'outcome',
  })
}
