import { AgentState, type StepEffect } from '@skein/agents'
import { step } from '@skein/agents/execution'
import { AssistantMessage, llm, type ToolCall, type ToolOutcome } from '@skein/ai'
import type { ResolvedSide } from '../definitions/resolved.ts'
import { answerInDoubt } from '../governance/in-doubt.ts'
import { isStoreError } from '../store/store.ts'
import { commitDeferred, commitOutcome } from './commit-outcome.ts'
import type { DrainContext } from './drain-context.ts'
import { isWaiting } from './next.ts'
import { runHooks } from './run-hooks.ts'
import type { CallState, Entry } from './state.ts'
import { callIdOf, toolsetOf, type Toolset } from './toolset.ts'

/** A call was settled outside of its run; the rest of the batch is taken up by the next look at the log. */
class BatchCutError extends Error {}

/** Runs the calls of a message that have no outcome, each journalled before and after. */
export async function runCalls(
  context: DrainContext,
  side: ResolvedSide,
  entry: Entry,
): Promise<void> {
  const { environment, signal } = context
  const { clock, ids } = environment
  const set = await toolsetOf(context, side)
  const message = ordered(context, entry, side)
  const events = step({
    state: AgentState.initial({ ids }).withMessage(message),
    llm: llm({ model: side.prompt.models[0]!.model, tools: set.tools, clock, ids }),
    tools: set.tools,
    settled: await settledOf(context, entry),
    mode: side.prompt.definition.parallelToolCalls ? 'parallel' : 'sequential',
    signal,
    clock,
    ids,
    commit: (effect) => journal(context, { side, set }, effect),
  })
  try {
    for (let batch = await events.next(); !batch.done;) batch = await events.next()
  } catch (error) {
    if (!(error instanceof BatchCutError) && !signal.aborted) throw error
  }
}

/**
 * Reads may overlap with their neighbours; a write waits for what stands before it, and they for it.
 * Nobody waits for a call that itself waits for an answer, which may take days.
 */
function ordered(
  { state }: DrainContext,
  { message, calls }: Entry,
  side: ResolvedSide,
): AssistantMessage {
  const said = message as AssistantMessage // only these have calls
  if (!side.prompt.definition.parallelToolCalls) return said
  const before: string[] = []
  let lastWrite: string | undefined
  const chained = calls.map((one): ToolCall => {
    const { call } = one
    if (isWaiting(state, one)) return call
    const after = isRead(call, side) ? (lastWrite === undefined ? [] : [lastWrite]) : [...before]
    before.push(call.toolCallId)
    if (!isRead(call, side)) lastWrite = call.toolCallId
    return after.length > 0 ? { ...call, after } : call
  })
  const { id, timestamp } = said
  return new AssistantMessage(said.content, chained, { id, timestamp })
}

function isRead({ toolName }: ToolCall, { prompt }: ResolvedSide): boolean {
  const tool = prompt.tools.find(({ name }) => name === toolName)
  return tool?.kind === 'tool' && tool.tool.governance.risk === 'read_only'
}

/** What is known about each call: outcomes, answers that are outcomes, and what still waits. */
async function settledOf(
  context: DrainContext,
  { calls }: Entry,
): Promise<ReadonlyMap<string, ToolOutcome>> {
  const settled = new Map<string, ToolOutcome>()
  for (const call of calls) {
    const outcome = call.outcome ?? (await answeredOutcome(context, call))
    if (outcome) settled.set(call.call.toolCallId, outcome)
  }
  return settled
}

async function answeredOutcome(
  context: DrainContext,
  call: CallState,
): Promise<ToolOutcome | undefined> {
  const { state } = context
  const open = call.interruptId === undefined ? undefined : state.interrupts.get(call.interruptId)
  if (!open) return undefined
  const { kind, request = null } = open.interrupt
  const waiting = { type: 'deferred', request: { kind, request: request as never } } as const
  if (isWaiting(state, call)) return waiting
  // Approvals are answered to the gate, which the call passes when it runs.
  if (kind === 'approval' || !open.answer) return undefined
  const outcome = isInDoubt(request)
    ? await inDoubtOutcome(context, call, open.answer)
    : toOutcome(open.answer)
  if (!outcome) return undefined
  await commitOutcome(context, { call: call.call, outcome })
  return outcome
}

function isInDoubt(request: unknown): boolean {
  return (request as { readonly type?: unknown } | null)?.type === 'in_doubt'
}

/** A person said what became of a call that a crash cut off; undefined lets it run again. */
async function inDoubtOutcome(
  context: DrainContext,
  { call }: CallState,
  answer: object,
): Promise<Exclude<ToolOutcome, { type: 'deferred' }> | undefined> {
  const governor = await context.governor()
  const result = await answerInDoubt({
    tool: { name: call.toolName },
    callId: callIdOf(context, call.toolCallId),
    governor,
    answer: 'value' in answer ? answer.value : undefined,
  })
  if (result.type === 'rerun') return undefined
  return result.type === 'done'
    ? { type: 'done', result: result.message }
    : { type: 'error', message: result.message }
}

function toOutcome(answer: { readonly type: string }): Exclude<ToolOutcome, { type: 'deferred' }> {
  const given = answer as { type: string; value?: unknown; message?: string; reason?: string }
  if (given.type === 'result') return { type: 'done', result: given.value ?? null }
  if (given.type === 'deny') return { type: 'denied', reason: given.reason ?? 'It was denied.' }
  return { type: 'error', message: given.message ?? 'It failed.' }
}

interface Running {
  readonly side: ResolvedSide
  readonly set: Toolset
}

/** The intent before a call, the outcome after it, each in one commit. */
async function journal(
  context: DrainContext,
  { side, set }: Running,
  effect: StepEffect,
): Promise<void> {
  if (effect.type === 'call_start') return start(context, side, effect.call)
  if (effect.type !== 'call_end') return
  const { call, outcome } = effect
  const { toolCallId } = call
  const write = {
    call,
    side,
    changes: set.changes.get(toolCallId),
    plan: set.plans.get(toolCallId),
    admitted: set.admitted.get(toolCallId),
  }
  if (outcome.type === 'deferred')
    await commitDeferred(context, { ...write, request: outcome.request })
  else await commitOutcome(context, { ...write, outcome })
}

async function start(context: DrainContext, side: ResolvedSide, call: ToolCall): Promise<void> {
  const { toolCallId, toolName, arguments: args } = call
  const turnId = context.state.session?.turn?.id ?? ''
  const at = context.at()
  try {
    const started = {
      type: 'tool_execution_start',
      at,
      turnId,
      toolCallId,
      toolName,
      arguments: args,
      epoch: context.epoch,
    } as const
    await context.commit('call_start', { events: [started] })
  } catch (error) {
    if (!isStoreError(error, 'TOKEN_SPENT')) throw error
    await refuseReplayed(context, call, turnId)
    const reason = 'The call was refused: APPROVAL_REPLAYED (the approval was used before).'
    await commitOutcome(context, { call, outcome: { type: 'denied', reason } })
    throw new BatchCutError()
  }
  const seen = { toolCallId, toolName, arguments: args }
  await runHooks(context, { side, name: 'tool_call_started', args: () => [seen] }, undefined)
}

/** The gates, opened again, hear that the token was of no use; else the review would stay open. */
async function refuseReplayed(
  context: DrainContext,
  { toolCallId, toolName, arguments: args }: ToolCall,
  turnId: string,
): Promise<void> {
  context.dropGovernor()
  const governor = await context.governor()
  const call = { id: callIdOf(context, toolCallId), toolCallId, tool: toolName, args, turnId }
  await governor.admit(call, { type: 'deny', reason: 'APPROVAL_REPLAYED' })
}
