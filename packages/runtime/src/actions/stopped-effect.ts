import type { LateOutcome } from '@skein/ai'
import type { AdmittedCall } from '@skein/governance'
import type { DrainContext } from '../context/drain-context.ts'
import { type CutOff, settleCutOff } from '../governance/in-doubt.ts'
import { type EffectRun, effectContext, runCallId } from './effect-run.ts'
import { settleRun } from './effect-gate.ts'
import { endFound, retryAfter, endRun, askAboutRun } from './end-effect.ts'

/** How an effect was stopped that gave no result within its grace. */
export interface StoppedEffect {
  readonly how: Exclude<CutOff, 'crash' | 'cut'>
  /** Whether its code has ended, because it obeyed its signal. */
  readonly hasEnded: boolean
}

export function reportLateEffect(
  context: DrainContext,
  run: EffectRun,
  attempt: number,
  outcome: LateOutcome,
): void {
  const { effectId, name } = run.effect.scheduled
  const id = runCallId(run, attempt)
  const redactor = context.redactor()
  context.environment.late({
    threadId: context.head.id,
    turnId: '',
    toolCallId: id,
    toolName: name,
    outcome: redactor?.json(outcome) ?? outcome,
    callId: id,
    isGoverned: run.governor !== undefined,
    effect: { effectId },
  })
}

/** Settles a scheduled effect that was stopped and gave no result. It is not started again. */
export async function stoppedRun(
  context: DrainContext,
  run: EffectRun,
  {
    attempt,
    admitted,
    how,
    hasEnded,
  }: StoppedEffect & {
    readonly attempt: number
    readonly admitted: AdmittedCall | undefined
  },
): Promise<void> {
  const { stopGraceMs } = context.environment.limits
  // The signal may have aborted, but a probe changes nothing and may still look.
  const signal = context.signal.aborted ? AbortSignal.timeout(stopGraceMs) : context.signal
  const { idempotencyKey } = effectContext(context, run, attempt, signal)
  const { decision, settled } = await settleCutOff({
    how,
    hasEnded,
    tool: run.tool,
    callId: runCallId(run, attempt),
    args: run.args,
    context: { signal, idempotencyKey },
  })
  await settleRun(run, admitted, settled)
  if (decision.type === 'absent')
    return endRun(context, run, {
      outcome: 'failed',
      error: decision.message,
      retryAfterMs: retryAfter(run, attempt),
    })
  // A thread that has ended does not act on an answer any more.
  if (decision.type === 'ask' && !context.state.terminated)
    return askAboutRun(context, run, { kind: 'in_doubt', request: decision.request })
  const finding = decision.type === 'ask' ? unknownEnd : decision
  return endFound(context, run, finding, { settledBy: 'probe', cutOff: how })
}

const unknownEnd = { type: 'unknown', message: '' } as const
