import type { AdmittedCall, GovernedOutcome } from '@skein/governance'
import type { DrainContext } from '../context/drain-context.ts'
import type { Write } from '../context/write.ts'
import { sentArguments } from '../state/calls.ts'
import { answerToApproval } from '../calls/approval-answer.ts'
import { type EffectRun, runCallId } from './effect-run.ts'

type Gate =
  | { readonly type: 'allow'; readonly call: AdmittedCall | undefined }
  | { readonly type: 'deny'; readonly reason: string }
  | { readonly type: 'ask'; readonly request: object }

/** Asks the governor whether the scheduled effect may run. Effects that are not governed always may. */
export async function admitRun(
  context: DrainContext,
  run: EffectRun,
  attempt: number,
): Promise<Gate> {
  const { governor, effect, refusal } = run
  if (refusal !== undefined) return { type: 'deny', reason: refusal }
  if (!governor) return { type: 'allow', call: undefined }
  const { effectId, name, args: given } = effect.scheduled
  const { args } = run
  const { interruptId } = effect
  const open = interruptId === undefined ? undefined : context.state.interrupts.get(interruptId)
  const request = {
    id: runCallId(run, attempt),
    toolCallId: effectId,
    tool: name,
    args,
    turnId: '',
  }
  const original = sentArguments(given, args)
  const call = original === undefined ? request : { ...request, sent: original }
  const admission = await governor.admit(call, open && answerToApproval(open))
  switch (admission.type) {
    case 'allow':
      return { type: 'allow', call: admission.call }
    case 'review':
      return { type: 'ask', request: admission.request }
    case 'replay':
      return { type: 'deny', reason: 'The effect ran before.' }
    case 'deny': {
      const reasons = admission.reasons.map(({ code, detail }) =>
        detail === undefined ? code : `${code} (${detail})`,
      )
      return { type: 'deny', reason: `The effect was refused: ${reasons.join(', ')}.` }
    }
  }
}

export async function settleRun(
  { governor }: EffectRun,
  admitted: AdmittedCall | undefined,
  outcome: GovernedOutcome,
): Promise<void> {
  if (governor && admitted) await governor.settle(admitted.call, outcome, '')
}

/** Returns the audit lines of the run, without the governor's events, which are only about calls of a session. */
export function governorWrites({ governor }: EffectRun): Pick<Write, 'governance'> {
  return governor ? { governance: { ...governor.takeWrites(), events: [] } } : {}
}
