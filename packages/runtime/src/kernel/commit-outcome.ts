import type { DeferRequest, ToolCall } from '@skein/ai'
import type { HookToolResult } from '../definitions/hooks.ts'
import type { ResolvedSide } from '../definitions/resolved.ts'
import type { RuntimeEvent } from '../event.ts'
import { failedCall } from '../governance/in-doubt.ts'
import type { FacadeChanges } from '../services/thread-facade.ts'
import { isStoreError, type ThreadChange } from '../store/store.ts'
import { boundMessage } from './decide.ts'
import type { DrainContext } from './drain-context.ts'
import { findCall } from './fold-calls.ts'
import { hookedWriteOf } from './facade-changes.ts'
import { tellMessageHooks } from './message-hooks.ts'
import { toParent } from './open-facade.ts'
import { runHooks } from './run-hooks.ts'
import type { SpawnPlan } from './spawn.ts'
import { tellChildCreated } from './tell-child-created.ts'
import type { AdmittedTool } from './toolset.ts'
import { toLogged, toToolResult, type SettledOutcome } from './tool-outcome.ts'

/** The end of a call, with all that becomes true together with it. */
export interface OutcomeWrite {
  readonly call: ToolCall
  readonly outcome: SettledOutcome
  readonly side?: ResolvedSide
  readonly changes?: FacadeChanges | undefined
  readonly plan?: SpawnPlan | undefined
  readonly admitted?: AdmittedTool | undefined
}

/** Commits the outcome of a call: its result, what it changed, its evidence, its children. */
export async function commitOutcome(context: DrainContext, write: OutcomeWrite): Promise<void> {
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
    ...status.flatMap((event) => toParent(context, event)),
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
  await tellChildCreated(context, plan, side)
  if (!side) return
  await tellMessageHooks(context, side, own?.events ?? [])
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
export async function commitDeferred(
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
    ...(expiresAt !== undefined && { expiresAt }),
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
  await tellChildCreated(context, plan, side)
}
