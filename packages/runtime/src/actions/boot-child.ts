import { spawnImmediate } from './spawn-immediate.ts'
import { afterSpawn, planSpawn, type SpawnPlan, refuseBeyondLimits } from '../children/spawn.ts'
import { payloadOf } from '../children/tools.ts'
import type { DrainContext } from '../context/drain-context.ts'
import type { RuntimeEvent, VariablesProvided, VariablesRequested } from '../contract/event.ts'
import { envContext } from '../secrets/vault.ts'
import { refuseDisabled } from '../thread/env.ts'
import { requestedRelation, type OwnedRelation } from '../state/variables.ts'
import { isStoreError } from '../store/store-error.ts'

/**
 * Creates a child whose variables a person provided after the call, with the arguments of that call (Standard
 * Agents §7.8).
 */
export async function bootChild(context: DrainContext, requestId: string): Promise<void> {
  const { state, environment } = context
  const pending = state.variables.get(requestId)
  if (!pending?.provided) return
  const { requested, provided } = pending
  const { agent: name = state.agent } = requested
  const at = context.at()
  const settlement = (outcome: { reference: string } | { error: string }): RuntimeEvent => {
    return { type: 'variables_settled', at, requestId, ...outcome }
  }
  try {
    const owner = requestedRelation(environment.registry, state, requested)
    if (!owner) throw new Error(`"${requested.relation}" is no longer a subagent of "${name}".`)
    const { agent, side, relation } = owner
    refuseDisabled(relation, context.env(side, undefined, agent))
    refuseBeyondLimits(context, relation)
    const plan = await planDeferred(context, owner, { requested, provided })
    if (context.signal.aborted) return
    const { others, blobs = [] } = plan
    const events = [...plan.events, settlement({ reference: plan.reference })]
    await context.commit('boot_child', { kind: 'outcome', events, others, blobs })
    await afterSpawn(context, plan, side)
  } catch (error) {
    if (!(error instanceof Error) || isStoreError(error)) throw error
    const events = [settlement({ error: error.message })]
    await context.commit('boot_child', { kind: 'outcome', events })
  }
}

async function planDeferred(
  context: DrainContext,
  found: OwnedRelation,
  {
    requested,
    provided,
  }: { readonly requested: VariablesRequested; readonly provided: VariablesProvided },
): Promise<SpawnPlan> {
  const { environment, head } = context
  const values = new Map(
    Object.entries(provided.values).map(([name, { valueType: type, value }]) => {
      const open =
        type === 'secret' ? environment.vault.open(value, envContext(head.id, name)) : value
      return [name, { type, value: open }] as const
    }),
  )
  context.hide([...values.values()].flatMap(({ type, value }) => (type === 'secret' ? value : [])))
  if (requested.isImmediate) return spawnImmediate(context, found, values)
  const { agent, side, relation } = found
  return planSpawn(context, {
    relation,
    agent,
    env: context.env(side, undefined, agent),
    isAwaited: false,
    provided: values,
    ...(await payloadOf(context, relation, requested.arguments)),
    attachments: requested.attachments ?? [],
  })
}
