import type { ToolCall, ToolOutcome } from '@skein/ai'
import type { GovernedOutcome } from '@skein/governance'
import type { DrainContext } from '../context/drain-context.ts'
import { CUT, isStop } from '../contract/abort-reason.ts'
import { settleCutOff } from '../governance/in-doubt.ts'
import { callIdOf } from '../state/calls.ts'
import type { ToolDefinition } from '../definitions/tool-definition.ts'

/** What became of a call that was stopped and gave no result within its grace. */
export interface CutOffCall {
  readonly outcome: ToolOutcome
  /** What the governor records. */
  readonly record: GovernedOutcome
  /** Whether a probe found out what became of the call. */
  readonly isProbed: boolean
}

/** Decides about a call that was stopped, and gave no result within its grace. */
export async function decideCutOff(
  { state, head, environment }: DrainContext,
  {
    call,
    tool,
    signal,
    hasEnded,
    idempotencyKey,
  }: {
    readonly call: ToolCall
    readonly tool: ToolDefinition
    /** Aborts when the call has to stop. */
    readonly signal: AbortSignal
    readonly hasEnded: boolean | undefined
    readonly idempotencyKey: string | undefined
  },
): Promise<CutOffCall> {
  const { reason, aborted } = signal
  const callId = callIdOf(state, call.toolCallId)
  const { decision, settled: record } = await settleCutOff({
    how: reason === CUT ? 'cut' : isStop(reason) ? 'stop' : 'time_limit',
    hasEnded,
    tool,
    callId,
    args: call.arguments,
    context: {
      // The signal may have aborted, but a probe changes nothing and may still look.
      signal: aborted ? AbortSignal.timeout(environment.limits.stopGraceMs) : signal,
      idempotencyKey: idempotencyKey ?? `${head.id}/${callId}`,
    },
  })
  switch (decision.type) {
    case 'done':
      return { outcome: { type: 'done', result: decision.message }, record, isProbed: true }
    case 'absent':
      return { outcome: { type: 'error', message: decision.message }, record, isProbed: true }
    case 'unknown':
      return { outcome: decision, record, isProbed: false }
    case 'ask': {
      const request = { kind: 'in_doubt', request: decision.request } as const
      return { outcome: { type: 'deferred', request }, record, isProbed: false }
    }
  }
}
