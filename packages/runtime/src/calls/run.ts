import { AgentState, type StepEffect } from '@skein/agents'
import { step } from '@skein/agents/execution'
import {
  AssistantMessage,
  type DeferRequest,
  llm,
  type ToolCall,
  type ToolOutcome,
} from '@skein/ai'
import type { ResolvedSide } from '../definitions/resolved.ts'
import { answerInDoubt } from '../governance/in-doubt.ts'
import { isStoreError, type ThreadChange } from '../store/store.ts'
import type { DrainContext } from '../context.ts'
import { isWaiting } from '../next.ts'
import { runHooks } from '../hooks/run.ts'
import type { CallState, Entry } from '../state.ts'
import { type AdmittedTool, callIdOf, type Toolset, toolsetOf } from './tools.ts'
import type { HookToolResult } from '../definitions/hooks.ts'
import type { RuntimeEvent } from '../event.ts'
import { failedCall } from '../governance/failed-call.ts'
import type { FacadeChanges } from '../thread/facade.ts'
import { boundMessage } from '../session/decide.ts'
import { findCall, type SettledOutcome, toLogged, toToolResult } from '../fold/calls.ts'
import { type SpawnPlan, afterSpawn } from '../children/spawn.ts'
import { hookedWriteOf, afterStored } from '../hooks/messages.ts'
import { statusToParent } from '../thread/changes.ts'

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

/** The end of a call, with all that becomes true together with it. */
interface OutcomeWrite {
  readonly call: ToolCall
  readonly outcome: SettledOutcome
  readonly side?: ResolvedSide
  readonly changes?: FacadeChanges | undefined
  readonly plan?: SpawnPlan | undefined
  readonly admitted?: AdmittedTool | undefined
}

/** Commits the outcome of a call: its result, what it changed, its evidence, its children. */
async function commitOutcome(context: DrainContext, write: OutcomeWrite): Promise<void> {
  const { call, side, changes, plan, admitted } = write
  const turnId = context.state.session?.turn?.id ?? ''
  const { outcome, isHidden } = side
    ? await throughHooks(context, side, write)
    : { outcome: write.outcome, isHidden: false }
  const { toolCallId, toolName } = call
  const at = context.at()
  const ended: RuntimeEvent = {
    type: 'tool_execution_end',
    at,
    turnId,
    toolCallId,
    toolName,
    ...toLogged(outcome),
  }
  const status = side ? statusEvents(context, side, { call, outcome }) : []
  // A call that threw has changed nothing, whatever a hook makes of its result.
  const isDone = write.outcome.type === 'done'
  const own = isDone && changes ? await hookedWriteOf(context, changes, side) : undefined
  const events = [...(own?.events ?? []), ...(plan?.events ?? []), ended, ...status]
  if (isHidden) events.push({ type: 'tool_call_hidden', at, toolCallId })
  const others: ThreadChange[] = [
    ...(plan?.others ?? []),
    ...status.flatMap((event) => statusToParent(context, event)),
    ...(own?.others ?? []),
  ]
  const blobs = [...(own?.blobs ?? []), ...(plan?.blobs ?? [])]
  // Last of all: hooks may commit, and what the gates write must not become true before the result does.
  if (admitted) await settleGoverned(context, { outcome: write.outcome, admitted, turnId })
  try {
    await context.commit('call_end', {
      events,
      others,
      blobs,
      isProgress: true,
      ...(own?.head && { head: own.head }),
    })
  } catch (error) {
    return childIsOver(context, { call, plan }, error)
  }
  await afterSpawn(context, plan, side)
  if (!side) return
  await afterStored(context, side, own?.events ?? [])
  await afterCall(context, side, call, outcome)
}

/** The child ended while the call spoke to it: nothing was sent. */
async function childIsOver(
  context: DrainContext,
  { call, plan }: Pick<OutcomeWrite, 'call' | 'plan'>,
  error: unknown,
): Promise<void> {
  if (!plan || !isStoreError(error, 'THREAD_TERMINATED')) throw error
  const message = 'The subagent was terminated and takes no more messages.'
  return commitOutcome(context, { call, outcome: { type: 'error', message } })
}

/** Tells the gates what came of the call: evidence, or what is known of its effect. */
async function settleGoverned(
  context: DrainContext,
  {
    outcome,
    admitted: { tool, call },
    turnId,
  }: { readonly outcome: SettledOutcome; readonly admitted: AdmittedTool; readonly turnId: string },
): Promise<void> {
  const governor = await context.governor()
  if (outcome.type === 'done') {
    const value = outcome.result ?? null
    const safe = context.redactor()?.json(value) ?? value
    await governor.settle(call.call, { type: 'result', value: safe }, turnId)
    return
  }
  const error = outcome.type === 'error' ? outcome.cause : undefined
  const text = outcome.type === 'error' ? outcome.message : outcome.reason
  const message = context.redactor()?.text(text) ?? text
  const failed = await failedCall(tool, call, { error, message, signal: context.signal })
  await governor.settle(call.call, failed, turnId)
}

async function throughHooks(
  context: DrainContext,
  side: ResolvedSide,
  { call, outcome }: OutcomeWrite,
): Promise<{ readonly outcome: SettledOutcome; readonly isHidden: boolean }> {
  const seen = { toolCallId: call.toolCallId, toolName: call.toolName, arguments: call.arguments }
  let isHidden = false
  const name = outcome.type === 'done' ? 'after_tool_call_success' : 'after_tool_call_failure'
  const before = resultOf(call, outcome)
  const judged = await runHooks(
    context,
    {
      side,
      name,
      args: (result: HookToolResult) => [seen, result],
      fold: (result, answer) => {
        if (answer === null) isHidden = true
        return answer ?? result
      },
    },
    before,
  )
  const stored = await runHooks(
    context,
    {
      side,
      name: 'before_store_tool_result',
      args: (result: HookToolResult) => [seen, result],
      fold: (_, answer) => answer,
    },
    judged,
  )
  if (stored === before) return { outcome, isHidden }
  const { result, isError } = stored
  const text = typeof result === 'string' ? result : JSON.stringify(result)
  return {
    outcome: isError ? { type: 'error', message: text } : { type: 'done', result },
    isHidden,
  }
}

function resultOf(call: ToolCall, outcome: SettledOutcome): HookToolResult {
  const { result, isError = false } = toToolResult({ call, outcome })
  return { result, isError }
}

async function afterCall(
  context: DrainContext,
  side: ResolvedSide,
  call: ToolCall,
  outcome: SettledOutcome,
): Promise<void> {
  const seen = { toolCallId: call.toolCallId, toolName: call.toolName, arguments: call.arguments }
  const result = resultOf(call, outcome)
  await runHooks(context, { side, name: 'tool_call_done', args: () => [seen, result] }, undefined)
}

/** A successful status tool publishes its text (§7.10). */
function statusEvents(
  context: DrainContext,
  side: ResolvedSide,
  { call, outcome }: { readonly call: ToolCall; readonly outcome: SettledOutcome },
): RuntimeEvent[] {
  const binding = side.sessionStatus
  if (binding?.name !== call.toolName || outcome.type !== 'done') return []
  const text = boundMessage({ call, outcome }, binding)
  return [{ type: 'status_changed', at: context.at(), status: 'running', text }]
}

/** Commits that a call waits: the interrupt, and the child it waits for, if that is what it does. */
async function commitDeferred(
  context: DrainContext,
  {
    call,
    side,
    plan,
    request,
  }: Pick<OutcomeWrite, 'call' | 'side' | 'plan'> & { readonly request: DeferRequest },
): Promise<void> {
  const { environment, state } = context
  const turnId = state.session?.turn?.id ?? ''
  const { toolCallId } = call
  if (findCall(state, toolCallId)?.call.interruptId !== undefined && request.kind !== 'approval')
    return
  const interrupt = {
    id: plan?.interruptId ?? environment.ids(),
    toolCallId,
    kind: request.kind,
    request: request.request,
  }
  const ttl = request.kind === 'child' ? undefined : environment.limits.interruptTtlMs
  const expiresAt =
    ttl === undefined ? undefined : new Date(environment.clock.now() + ttl).toISOString()
  const opened: RuntimeEvent = {
    type: 'interrupt_opened',
    at: context.at(),
    turnId,
    interrupt,
    expiresAt,
  }
  const events = [...(plan?.events ?? []), opened]
  const others = plan?.others ?? []
  try {
    await context.commit('call_waits', {
      events,
      others,
      blobs: plan?.blobs ?? [],
      isProgress: true,
    })
  } catch (error) {
    return childIsOver(context, { call, plan }, error)
  }
  await afterSpawn(context, plan, side)
}
