import { isPlainObject } from '@skein/base'
import type { DrainContext } from '../context/drain-context.ts'
import type { RuntimeEvent } from '../contract/event.ts'
import { type CallState, type OpenInterrupt, openCalls, sideOf } from '../state/kernel-state.ts'
import type { ToolDefinition } from '../definitions/tool-definition.ts'
import { argumentsToRun, callIdOf } from '../state/calls.ts'
import {
  answerInDoubt,
  effectiveRisk,
  type InDoubt,
  settleUnknownEffect,
} from '../governance/in-doubt.ts'
import { isStoreError } from '../store/store-error.ts'
import { endLate } from './late.ts'

/** Why calls end before they have a result. */
interface EndOfCalls {
  /** A sentence, which begins each result. */
  readonly why: string
  /** What is said of a call that never started, of one that waits for a child, and of one that waits for an answer. */
  readonly notRun?: string
  readonly child?: string
  readonly input?: Pick<CallEnd, 'outcome' | 'result'>
}

type CallEnd = Extract<RuntimeEvent, { readonly type: 'tool_execution_end' }>

/**
 * Returns the events that end the calls of the running step which have no outcome. The model must not take a write that
 * started for one that never ran, or the other way round. If it is unknown whether a high-risk write took effect, a
 * person is asked, or the open question about it stays: nothing waits for the answer, which the model gets as a message.
 */
export async function endOpenCalls(
  context: DrainContext,
  ends: EndOfCalls,
): Promise<readonly RuntimeEvent[]> {
  const events: RuntimeEvent[] = []
  for (const call of openCalls(context.state)) events.push(...(await endOf(context, call, ends)))
  return events
}

async function endOf(
  context: DrainContext,
  one: CallState,
  { why, notRun = `${why} This call was not run.`, child, input }: EndOfCalls,
): Promise<readonly RuntimeEvent[]> {
  const { interruptId, mayHaveRun, startedEpoch, late } = one
  const open = context.state.interrupts.get(interruptId ?? '')
  const kind = open?.interrupt.kind
  const end = (outcome: CallEnd['outcome'], result: unknown): CallEnd => ({
    ...endBase(context, one),
    outcome,
    result,
  })
  if (late) return [await endLate(context, one, await governorIfAny(context))]
  if (kind === 'in_doubt') return endInDoubt(context, one, open!, why)
  if (kind === 'child') return [end('interrupted', child ?? `${why} ${CHILD_LEFT}`)]
  if (kind === 'input') {
    if (input) return [end(input.outcome, input.result)]
    // The client may have run the tool, and its result may be on the way.
    if (isClientTool(open?.interrupt.request)) return [end('unknown', `${why} ${UNKNOWN}`)]
    return [end('interrupted', `${why} This call has no result.`)]
  }
  const tool = mayHaveRun ? writingTool(context, one) : undefined
  if (tool && startedEpoch !== undefined) return endStarted(context, one, tool, why)
  // It was to run again after a crash, unless a person has found that it had no effect.
  if (tool && kind !== 'approval') return [end('unknown', `${why} ${UNKNOWN}`)]
  return [end('interrupted', mayHaveRun ? `${why} This call has no result.` : notRun)]
}

function endBase(
  context: DrainContext,
  { call: { toolCallId, toolName } }: CallState,
): Pick<CallEnd, 'type' | 'at' | 'turnId' | 'toolCallId' | 'toolName'> {
  const turnId = context.state.session?.turn?.id ?? ''
  return { type: 'tool_execution_end', at: context.at(), turnId, toolCallId, toolName }
}

const CHILD_LEFT =
  'The subagent had not answered, and may have done a part of its work; find out before you call it again.'

const UNKNOWN = 'Whether this call took effect is unknown; find out before you call it again.'

/** Ends a call about which a person was asked. An answer that the thread has not used yet is used now. */
async function endInDoubt(
  context: DrainContext,
  one: CallState,
  { interrupt, answer }: OpenInterrupt,
  why: string,
): Promise<readonly RuntimeEvent[]> {
  const base = endBase(context, one)
  if (!answer)
    return [
      { ...base, outcome: 'unknown', result: `${why} ${UNKNOWN}` },
      { type: 'interrupt_opened', at: base.at, turnId: base.turnId, interrupt },
    ]
  const { toolCallId, toolName } = one.call
  const decision = await answerInDoubt({
    tool: { name: toolName },
    callId: callIdOf(context.state, toolCallId),
    governor: await governorIfAny(context),
    request: interrupt.request,
    answer: (answer as { readonly value?: unknown }).value,
  })
  return [endFound(base, decision, { why, settledBy: 'person' })]
}

/** Ends a write that was started by work on the thread that has ended, e.g. because its process died. */
async function endStarted(
  context: DrainContext,
  one: CallState,
  tool: ToolDefinition,
  why: string,
): Promise<readonly RuntimeEvent[]> {
  const { state, head, environment } = context
  const base = endBase(context, one)
  const callId = callIdOf(state, one.call.toolCallId)
  const decision = await settleUnknownEffect({
    tool,
    callId,
    args: argumentsToRun(one),
    governor: await governorIfAny(context),
    context: {
      // The signal of the work has aborted, but a probe changes nothing and may still look.
      signal: AbortSignal.timeout(environment.limits.stopGraceMs),
      idempotencyKey: `${head.id}/${callId}`,
    },
  })
  // It could run again safely, but it does not, and what the first run has done is unknown.
  if (decision.type === 'rerun' && tool.governance.idempotent)
    return [{ ...base, outcome: 'unknown', result: `${why} ${UNKNOWN}` }]
  if (decision.type !== 'ask') return [endFound(base, decision, { why, settledBy: 'probe' })]
  const { toolCallId } = one.call
  const { request } = decision
  const interrupt = { id: environment.ids(), toolCallId, kind: 'in_doubt', request } as const
  return [
    { ...base, outcome: 'unknown', result: `${why} ${UNKNOWN}` },
    { type: 'interrupt_opened', at: base.at, turnId: base.turnId, interrupt },
  ]
}

function endFound(
  base: ReturnType<typeof endBase>,
  found: Exclude<InDoubt, { readonly type: 'ask' }>,
  { why, settledBy }: { readonly why: string; readonly settledBy: 'probe' | 'person' },
): CallEnd {
  switch (found.type) {
    case 'done':
      return { ...base, outcome: 'success', result: found.message, settledBy }
    case 'rerun': {
      const result = `${why} This call had no effect, and is not run again.`
      return { ...base, outcome: 'interrupted', result }
    }
    case 'unknown':
      return { ...base, outcome: 'unknown', result: `${why} ${UNKNOWN}` }
  }
}

/** Returns the governor of the session; undefined if it cannot be opened, e.g. without the thread's agent. */
async function governorIfAny(
  context: DrainContext,
): Promise<Awaited<ReturnType<DrainContext['governor']>> | undefined> {
  try {
    return await context.governor()
  } catch (error) {
    if (isStoreError(error)) throw error
    return undefined
  }
}

/** Whether a call waits for the client, which runs its tool. */
function isClientTool(request: unknown): boolean {
  return isPlainObject(request) && request['kind'] === 'client_tool'
}

/**
 * Returns the tool of a call if it may change something outside of its thread. The tools of the runtime itself change
 * only the thread, together with their result.
 */
function writingTool(context: DrainContext, one: CallState): ToolDefinition | undefined {
  const { state, environment } = context
  const { toolName } = one.call
  const agent = environment.registry.agents.get(state.agent)
  const turn = state.session?.turn
  if (!agent || !turn) return goneTool(toolName)
  const side = sideOf(agent, turn)
  const definition = side.prompt.tools.find(({ name }) => name === toolName)
  if (!definition)
    return context.tools(side).some(({ name }) => name === toolName)
      ? undefined
      : goneTool(toolName)
  if (definition.kind !== 'tool' || !definition.tool.run) return undefined
  const { tool } = definition
  return effectiveRisk(tool, argumentsToRun(one)) === 'read_only' ? undefined : tool
}

/**
 * Stands for a tool that is not defined here, e.g. because a deploy has removed it while a call of it ran. The tool may
 * have been a write, and its probe is gone too, so the outcome of the call is unknown.
 */
export function goneTool(name: string): ToolDefinition {
  const governance = { risk: 'write_low_risk' } as const
  return { kind: 'tool', name, description: '', parameters: {}, governance }
}
