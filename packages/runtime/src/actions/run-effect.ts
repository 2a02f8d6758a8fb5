import { type JsonValue, messageOf, TimeLimitError, withTimeLimit } from '@skein/base'
import { isAbort } from '@skein/ai/engine'
import type { AdmittedCall } from '@skein/governance'
import type { DrainContext } from '../context/drain-context.ts'
import { isShutdown, isStop } from '../contract/abort-reason.ts'
import { effectiveRisk, failedCall } from '../governance/in-doubt.ts'
import { hookedWriteOf } from '../hooks/hooks.ts'
import { type EffectRun, openRun, effectContext } from './effect-run.ts'
import { admitRun, settleRun, governorWrites } from './effect-gate.ts'
import { retryAfter, endRun, askAboutRun } from './end-effect.ts'
import { type StoppedEffect, reportLateEffect, stoppedRun } from './stopped-effect.ts'
import { isStoreError } from '../store/store-error.ts'

const DEFAULT_TIMEOUT_MS = 60_000

/**
 * Runs a scheduled effect that is due. Its start is committed before it runs, and its changes to the thread are
 * committed together with its end. A governed effect is judged by the policy as a tool call is; if a person has to
 * approve it, it waits.
 */
export async function runEffect(context: DrainContext, effectId: string): Promise<void> {
  const effect = context.state.effects.get(effectId)
  if (!effect) return
  const { agent, epoch } = context
  const attempt = effect.attempts + 1
  const run = await openRun(context, effect)
  const gate = await admitRun(context, run, attempt)
  if (gate.type === 'ask')
    return askAboutRun(context, run, {
      kind: 'approval',
      request: gate.request as unknown as JsonValue,
    })
  if (gate.type === 'deny') return endRun(context, run, { outcome: 'failed', error: gate.reason })
  const start = { type: 'effect_started', at: context.at(), effectId, attempt, epoch } as const
  try {
    await context.commit('effect_start', { events: [start], ...governorWrites(run) })
  } catch (error) {
    if (!isStoreError(error, 'TOKEN_SPENT')) throw error
    const used = 'The effect was refused: APPROVAL_REPLAYED (the approval was used before).'
    const nextRun = await openRun(context, effect) // its records of the approval were not committed
    return endRun(context, nextRun, { outcome: 'failed', error: used })
  }
  const facade = context.facade(agent.a)
  const { definition } = run
  let end: 'done' | StoppedEffect
  try {
    if (!definition) throw new Error(`There is no effect "${effect.scheduled.name}" any more.`)
    const { name } = effect.scheduled
    const work = (limited: AbortSignal): Promise<unknown> =>
      context.runUserCode({ kind: 'effect', name, id: effectId }, () =>
        definition.run(facade.state, run.args, effectContext(context, run, attempt, limited)),
      )
    end = await runInTime(context, run, attempt, work)
  } catch (error) {
    // The work was aborted. The next work on the thread finds out what the effect has done.
    if (error instanceof AbortedError) return
    return failRun(context, run, { attempt, error, admitted: gate.call })
  } finally {
    context.hide(facade.secrets())
  }
  if (end !== 'done') return stoppedRun(context, run, { attempt, admitted: gate.call, ...end })
  const write = await hookedWriteOf(context, facade.takeChanges(), agent.a)
  await settleRun(run, gate.call, { type: 'result', value: null })
  const onLost = (): void => reportLateEffect(context, run, attempt, { type: 'done', result: null })
  await endRun(context, run, { outcome: 'done', write: { ...write, onLost } })
}

/** Thrown when the work on the thread was aborted and what the effect has done is left to the next work. */
class AbortedError extends Error {}

/**
 * Runs the code of a scheduled effect with its time limit. An effect that may not run again has a grace to end by itself
 * after the limit or an abort; if it does not, its outcome is unknown, and what it ends with is recorded late.
 */
async function runInTime(
  context: DrainContext,
  run: EffectRun,
  attempt: number,
  work: (limited: AbortSignal) => Promise<unknown>,
): Promise<'done' | StoppedEffect> {
  const { signal, environment } = context
  const { tool, args, definition } = run
  const mayRepeat = tool.governance.idempotent || effectiveRisk(tool, args) === 'read_only'
  let running: Promise<unknown> | undefined
  let own = signal // the signal that the effect gets
  const isObeyed = (cause: unknown): boolean => isAbort(cause, own, signal)
  try {
    const begin = (limited: AbortSignal): Promise<unknown> => {
      own = limited
      return (running = work(limited))
    }
    await withTimeLimit(begin, { limitMs: definition?.timeoutMs ?? DEFAULT_TIMEOUT_MS, signal })
    if (signal.aborted && mayRepeat) throw new AbortedError()
    return 'done'
  } catch (error) {
    const unfinished = running
    const isLimit = error instanceof TimeLimitError
    if (mayRepeat || !unfinished) throw signal.aborted ? new AbortedError() : error
    if (!isLimit && !signal.aborted) throw error
    const hasGrace = isShutdown(signal.reason) && signal.reason.hasGrace
    const isLeft = signal.aborted && !isStop(signal.reason) && !hasGrace
    const grace = isLeft ? 0 : environment.limits.stopGraceMs
    const how = isLimit ? 'time_limit' : 'stop'
    try {
      await withTimeLimit(() => unfinished, { limitMs: grace })
      return 'done'
    } catch (late) {
      if (isObeyed(late)) {
        if (isLeft || isShutdown(signal.reason)) throw new AbortedError()
        return { how, hasEnded: true }
      }
      if (!(late instanceof TimeLimitError)) throw late
      void unfinished.then(
        () => reportLateEffect(context, run, attempt, { type: 'done', result: null }),
        (cause: unknown) => {
          if (isObeyed(cause)) return
          reportLateEffect(context, run, attempt, { type: 'error', message: messageOf(cause) })
        },
      )
      if (isLeft || isShutdown(signal.reason)) throw new AbortedError()
      return { how, hasEnded: false }
    }
  }
}

/** Handles a scheduled effect that threw or took too long. It is tried again as its definition says. */
async function failRun(
  context: DrainContext,
  run: EffectRun,
  failure: {
    readonly attempt: number
    readonly error: unknown
    readonly admitted: AdmittedCall | undefined
  },
): Promise<void> {
  const { attempt, error: cause, admitted } = failure
  const text = messageOf(cause)
  const error = context.redactor()?.text(text) ?? text
  if (admitted) {
    const { signal } = context
    const failure = await failedCall(run.tool, admitted, { error: cause, message: error, signal })
    await settleRun(run, admitted, failure)
  }
  await endRun(context, run, { outcome: 'failed', error, retryAfterMs: retryAfter(run, attempt) })
}
