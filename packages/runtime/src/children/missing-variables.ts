import type { JsonObject } from '@skein/base'
import type { RuntimeEvent } from '../contract/event.ts'
import type { Relation, ResolvedSide } from '../definitions/resolved.ts'
import type { EnvReader } from '../thread/env.ts'
import type { FileStat } from '../contract/thread-state.ts'
import type { DrainContext } from '../context/drain-context.ts'

/**
 * Returns the names of required variables that have no value (Standard Agents §7.8), neither of the parent nor
 * by the child's definitions.
 */
export function missingVariables(
  { requiredVariables }: Relation,
  env: EnvReader,
): readonly string[] {
  return requiredVariables
    .filter(({ name, hasDefault }) => !hasDefault && env.get(name) === undefined)
    .map(({ name }) => name)
}

/**
 * Returns the structured error of a call whose child lacks variables, and the event with the request that a
 * person can answer.
 */
export function variablesError(
  context: DrainContext,
  call: {
    readonly relation: Relation
    readonly side: ResolvedSide
    readonly missing: readonly string[]
    readonly args: JsonObject
    readonly attachments: readonly FileStat[]
    readonly toolName: string
    readonly toolCallId?: string
    readonly isImmediate?: boolean
  },
): { readonly error: Error; readonly event: RuntimeEvent } {
  const { environment, head, agent } = context
  const { relation, missing, args, attachments, toolName, toolCallId, isImmediate } = call
  const requestId = environment.ids()
  const names = relation.requiredVariables.map(({ name }) => name)
  const expiresAt = new Date(
    environment.clock.now() + environment.limits.variablesTtlMs,
  ).toISOString()
  const details = {
    error: 'subagent_env_required',
    request_id: requestId,
    endpoint: `/threads/${head.id}/variables/${requestId}`,
    required: names,
    missing,
    message: `"${relation.key}" needs values for ${missing.join(', ')}. A person can give them at the endpoint; the subagent then starts by itself.`,
  }
  return {
    error: new Error(JSON.stringify(details)),
    event: {
      type: 'variables_requested',
      at: context.at(),
      requestId,
      required: names,
      missing,
      expiresAt,
      relation: relation.key,
      agent: agent.name,
      side: call.side.side,
      toolName,
      toolCallId,
      arguments: args,
      attachments: attachments.length > 0 ? attachments : undefined,
      isImmediate: isImmediate || undefined,
    },
  }
}
