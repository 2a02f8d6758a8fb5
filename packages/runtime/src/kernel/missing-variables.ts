import type { JsonObject } from '@skein/base'
import type { Relation } from '../definitions/resolved.ts'
import type { RuntimeEvent } from '../event.ts'
import type { EnvReader } from '../services/env-reader.ts'
import type { FileStat } from '../thread-state.ts'
import type { DrainContext } from './drain-context.ts'

/** Names of variables that the child needs and nobody has given (§7.8). */
export function missingVariables(
  { requiredVariables }: Relation,
  env: EnvReader,
): readonly string[] {
  return requiredVariables.map(({ name }) => name).filter((name) => env.get(name) === undefined)
}

/** The structured error of the call, and the request that a person can answer. */
export function variablesError(
  context: DrainContext,
  call: {
    readonly relation: Relation
    readonly missing: readonly string[]
    readonly args: JsonObject
    readonly attachments: readonly FileStat[]
    readonly toolName: string
    readonly isImmediate?: boolean
  },
): { readonly error: Error; readonly event: RuntimeEvent } {
  const { environment, head } = context
  const { relation, missing, args, attachments, toolName, isImmediate } = call
  const requestId = environment.ids()
  const required = relation.requiredVariables.map(({ name }) => name)
  const expiresAt = new Date(
    environment.clock.now() + environment.limits.variablesTtlMs,
  ).toISOString()
  const details = {
    error: 'subagent_env_required',
    request_id: requestId,
    endpoint: `/threads/${head.id}/variables/${requestId}`,
    required,
    missing,
    message: `"${relation.key}" needs values for ${missing.join(', ')}. A person can give them at the endpoint; the subagent then starts by itself.`,
  }
  return {
    error: new Error(JSON.stringify(details)),
    event: {
      type: 'variables_requested',
      at: context.at(),
      requestId,
      required,
      missing,
      expiresAt,
      relation: relation.key,
      toolName,
      arguments: args,
      ...(attachments.length > 0 && { attachments }),
      ...(isImmediate && { isImmediate }),
    },
  }
}
