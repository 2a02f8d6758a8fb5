import type { JsonValue } from '@skein/base'
import type { ApiContext } from './api-context.ts'
import { approvalOf, isIrreversible } from './approval-request.ts'
import type { VariablesRequested } from '../contract/event.ts'
import type { WaitingItem } from '../contract/waiting-item.ts'
import type { VariableDefinition } from '../definitions/prompt-definition.ts'
import { argumentsToRun, findCall, sentArguments } from '../state/calls.ts'
import { registryOf, type KernelState, type OpenInterrupt } from '../state/kernel-state.ts'
import type { ThreadHead } from '../store/head.ts'
import { queuedTool } from '../thread/effects.ts'
import { isSecret } from '../thread/env.ts'
import { requestedRelation } from '../state/variables.ts'

/** A question and the thread that asks it. */
export interface WaitingQuestion {
  readonly head: ThreadHead
  readonly state: KernelState
  readonly open: OpenInterrupt
  readonly path: readonly string[]
}

/** Returns a question as the API shows it. */
export function questionItem(context: ApiContext, { head, state, open, path }: WaitingQuestion): WaitingItem {
  const registry = registryOf(context.registry, state)
  const { interrupt, openedAt, expiresAt, effectId, write } = open
  const effect = effectId === undefined ? undefined : state.effects.get(effectId)?.scheduled
  const place = effect || write ? undefined : findCall(state, interrupt.toolCallId)?.call
  const toolName = write?.toolName ?? effect?.name ?? place?.call.toolName ?? ''
  const risk = effect
    ? (queuedTool(registry, toolName)?.governance.risk ?? registry.effects.get(toolName)?.risk)
    : registry.tools.get(toolName)?.governance.risk
  const approval = interrupt.kind === 'approval' ? approvalOf(interrupt.request) : undefined
  const sentValue = (write?.arguments ?? effect?.args ?? place?.call.arguments ?? null) as JsonValue // arguments of a call are JSON
  // The digest covers the arguments of the action, and the call runs with these or asks again. A request of another
  // shape, which a call of a child has, is about another call.
  const isOwn = approval !== undefined && interrupt.request === approval
  const ownArguments = place ? argumentsToRun(place) : sentValue
  const shownArguments = isOwn ? approval.action.args : ownArguments
  const toRun = sentArguments(shownArguments, ownArguments) ?? ownArguments // the same value keeps the order of its members
  const other = sentArguments(sentValue, toRun)
  return {
    threadId: head.id,
    rootId: head.rootId,
    interruptId: interrupt.id,
    toolCallId: interrupt.toolCallId,
    toolName,
    arguments: toRun,
    ...(other !== undefined && { sentArguments: other }),
    kind: interrupt.kind as WaitingItem['kind'], // `openForPeople` returns no others
    ...(effectId !== undefined && { effectId }),
    path,
    openedAt,
    expiresAt,
    risk,
    isIrreversible: approval && isIrreversible(approval),
    request: approval,
    question: approval ? undefined : ((interrupt.request ?? null) as JsonValue), // the log is JSON
  }
}

/** Returns a request for variables as an item: names, types and descriptions, never values. */
export function variablesItem(
  context: ApiContext,
  { head, state, path }: Omit<WaitingQuestion, 'open'>,
  requested: VariablesRequested,
): WaitingItem {
  const { requestId, toolName, toolCallId = requestId, missing } = requested
  const declarations = requestedVariables(context, state, requested)
  return {
    threadId: head.id,
    rootId: head.rootId,
    interruptId: requestId,
    toolCallId,
    toolName,
    arguments: requested.arguments,
    kind: 'variables',
    path,
    openedAt: requested.at,
    expiresAt: requested.expiresAt,
    variables: missing.map((name) => {
      const unknown: VariableDefinition = { name, type: 'secret' }
      const { type = 'text', description } = declarations.find((one) => one.name === name) ?? unknown
      return description === undefined ? { name, type } : { name, type, description }
    }),
  }
}

/**
 * Returns the variables that the requested child declares. A variable is also a secret if it is one for the agent
 * that needs the child. Callers treat a variable that is not declared, e.g. because the definitions were changed, as
 * a secret.
 */
export function requestedVariables(
  context: ApiContext,
  state: KernelState,
  requested: VariablesRequested,
): readonly VariableDefinition[] {
  const requester = requestedRelation(context.registry, state, requested)
  if (!requester) return []
  const asker = { ...state, agent: requester.agent.name }
  return requester.relation.requiredVariables.map((one) =>
    isSecret(context, asker, one.name) ? { ...one, type: 'secret' } : one,
  )
}
