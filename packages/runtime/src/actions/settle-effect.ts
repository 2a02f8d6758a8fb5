import { type GovernedOutcome, reason } from '@skein/governance'
import type { DrainContext } from '../context/drain-context.ts'
import type { EffectState } from '../state/kernel-state.ts'
import {
  answerInDoubt,
  cutOffOf,
  type InDoubt,
  settleUnknownEffect,
} from '../governance/in-doubt.ts'
import { type EffectRun, openRun, effectContext, runCallId } from './effect-run.ts'
import { CUT_OFF, endFound, retryAfter, endRun, askAboutRun } from './end-effect.ts'

/** How many attempts a scheduled effect without `retry` has, if it may run again after a crash. */
const CRASH_ATTEMPTS = 5

const CRASH_BACKOFF_MS = 1_000

/**
 * Settles a scheduled effect that was running when a process died, or uses a person's answer about it. The rules are
 * those of tool calls: ask its probe; run it again if it only reads or is idempotent; ask a person if its risk
 * is high; otherwise record that the outcome is unknown. A crash counts as an attempt.
 */
export async function settleEffect(context: DrainContext, effectId: string): Promise<void> {
  const effect = context.state.effects.get(effectId)
  if (!effect) return
  const { interruptId, scheduled, attempts } = effect
  const run = await openRun(context, effect)
  const { tool, governor, definition } = run
  const callId = runCallId(run, attempts)
  const open = interruptId === undefined ? undefined : context.state.interrupts.get(interruptId)
  if (effect.late) return endLate(context, run, effect.late)
  if (open) {
    const answer = (open.answer as { readonly value?: unknown } | undefined)?.value
    const { request } = open.interrupt
    const cutOff = cutOffOf(request)
    const decision = await answerInDoubt({ tool, callId, governor, request, answer })
    if (decision.type !== 'rerun')
      return endFound(context, run, decision, { settledBy: 'person', cutOff })
    // For the governor the next attempt is another call that needs its own approval.
    const error = `${CUT_OFF[cutOff]} while it ran. A person found that it had no effect.`
    return endRun(context, run, { outcome: 'failed', error, retryAfterMs: 0 })
  }
  const { signal } = context
  const { idempotencyKey } = effectContext(context, run, attempts, signal)
  const probing = { signal, idempotencyKey }
  const found: InDoubt = definition
    ? await settleUnknownEffect({ tool, callId, args: run.args, governor, context: probing })
    : { type: 'unknown', message: `"${scheduled.name}" was cut off by a crash and is not defined.` }
  if (found.type === 'ask')
    return askAboutRun(context, run, { kind: 'in_doubt', request: found.request })
  if (found.type !== 'rerun')
    return endFound(context, run, found, { settledBy: 'probe', cutOff: 'crash' })
  const { attempts: most = CRASH_ATTEMPTS, backoffMs = CRASH_BACKOFF_MS } = definition?.retry ?? {}
  const error = `The process died while it ran (attempt ${attempts} of ${most}).`
  if (attempts >= most) return endRun(context, run, { outcome: 'unknown', error })
  const retryAfterMs = backoffMs * 2 ** (attempts - 1)
  return endRun(context, run, { outcome: 'failed', error, retryAfterMs })
}

/** Ends an attempt with the result that it has reported late. */
async function endLate(
  context: DrainContext,
  run: EffectRun,
  { outcome, result }: NonNullable<EffectState['late']>,
): Promise<void> {
  const { attempts } = run.effect
  const isDone = outcome === 'success'
  const why = [reason('TOOL_ERROR', run.tool.name, 'ended late')]
  const record: GovernedOutcome = isDone
    ? { type: 'result', value: null }
    : { type: 'error', reasons: why, effect: 'in_doubt' }
  await run.governor?.settleLate(runCallId(run, attempts), record, '')
  if (isDone) return endRun(context, run, { outcome: 'done', settledBy: 'result' })
  const error = String(result)
  return endRun(context, run, { outcome: 'failed', error, retryAfterMs: retryAfter(run, attempts) })
}
