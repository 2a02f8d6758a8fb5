import type { JsonValue } from '@skein/base'
import type { RuntimeEvent, SessionOutcome } from '../event.ts'
import type { ThreadChange } from '../store/store.ts'
import type { StepDecision } from './decide.ts'
import type { DrainContext } from './drain-context.ts'
import { openCalls } from './next.ts'
import { reportToParent } from './report.ts'
import type { KernelState } from './state.ts'
import { stepEnd, turnEnd } from './turn-events.ts'

/** How a session ends. */
export type SessionEnding = Pick<
  Extract<StepDecision, { type: 'end_session' }>,
  'reason' | 'message'
> & {
  readonly outcome: SessionOutcome
  readonly attachments?: readonly string[]
  readonly data?: JsonValue
  /** What the side still says, in the same commit. */
  readonly spoken?: readonly RuntimeEvent[]
  /** The turn came to its end, whatever becomes of the session. */
  readonly isTurnOver?: boolean
}

/** Ends the session, and tells the parent in the same transaction. */
export async function endSession(context: DrainContext, ending: SessionEnding): Promise<void> {
  const { state } = context
  const session = state.session
  if (!session) return
  if (ending.outcome !== 'completed' && session.isGoverned) {
    const governor = await context.governor()
    await governor.fail(ending.reason, ending.message)
  }
  const { outcome, reason, message, attachments = [], data, spoken = [] } = ending
  const isCut = outcome === 'stopped' || outcome === 'terminated'
  const reports = await reportToParent(context, { ...ending, attachments })
  const isUndelivered = state.parent !== undefined && reports.length === 0 && !isCut
  const events: RuntimeEvent[] = [
    ...cutCalls(context, outcome),
    ...spoken,
    ...stepEnd(context),
    ...turnEnd(context, turnOutcome(ending), reason),
    {
      type: 'session_end',
      at: context.at(),
      sessionId: session.id,
      outcome,
      reason,
      ...((message !== '' || !isCut) && { message }),
      ...(attachments.length > 0 && { attachments }),
      ...(data !== undefined && { data }),
      ...(isUndelivered && { isUndelivered }),
    },
  ]
  const others = [...reports, ...(outcome === 'stopped' ? stopAwaited(context) : [])]
  const head = { waiting: 0, lifecycle: lifecycleAfter[outcome] }
  await context.commit('session_end', { events, others, isProgress: true, head })
  context.dropGovernor()
}

const lifecycleAfter = {
  completed: 'idle',
  failed: 'failed',
  stopped: 'stopped',
  terminated: 'terminated',
} as const

function turnOutcome({
  outcome,
  isTurnOver,
}: SessionEnding): 'completed' | 'interrupted' | 'failed' {
  if (outcome === 'completed' || isTurnOver) return 'completed'
  return outcome === 'failed' ? 'failed' : 'interrupted'
}

/** Calls that had no result get one, or no vendor would take the history again. */
function cutCalls(context: DrainContext, outcome: SessionOutcome): RuntimeEvent[] {
  const turnId = context.state.session?.turn?.id ?? ''
  const why =
    outcome === 'stopped' ? 'The user stopped the run.' : `The session ended (${outcome}).`
  return openCalls(context.state).map(({ call: { toolCallId, toolName } }) => ({
    type: 'tool_execution_end' as const,
    at: context.at(),
    turnId,
    toolCallId,
    toolName,
    outcome: 'interrupted' as const,
    result: `${why} This call has no result.`,
  }))
}

/** A child that a call waits for stops with it: nobody would hear its result. */
function stopAwaited(context: DrainContext): ThreadChange[] {
  const { state, environment } = context
  const at = context.at()
  return [...state.interrupts.values()].flatMap(({ interrupt: { kind, request }, answer }) => {
    const reference = kind === 'child' && !answer ? referenceOf(request) : undefined
    if (reference === undefined || !isLive(state, reference)) return []
    const append = [{ type: 'stop_requested', at } as const]
    return [{ id: reference, append, wake: { by: environment.clock.now() } }]
  })
}

function referenceOf(request: unknown): string | undefined {
  const reference = (request as { readonly reference?: unknown } | null)?.reference
  return typeof reference === 'string' ? reference : undefined
}

function isLive({ children }: KernelState, reference: string): boolean {
  const lifecycle = children.get(reference)?.lifecycle
  return lifecycle === 'running' || lifecycle === 'awaiting_human'
}

/** The stop button, or the end of the thread. */
export async function close(
  context: DrainContext,
  outcome: 'stopped' | 'terminated',
): Promise<void> {
  const message = outcome === 'stopped' ? '' : 'The thread was terminated.'
  return endSession(context, { outcome, reason: outcome, message })
}
