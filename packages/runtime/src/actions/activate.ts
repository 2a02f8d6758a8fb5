import { messageOf } from '@skein/base'
import type { DrainContext } from '../contract/context.ts'
import type { ResolvedSide } from '../definitions/resolved.ts'
import type { RuntimeEvent, VariablesProvided, VariablesRequested } from '../contract/event.ts'
import { requestedRelation, type OwnedRelation } from '../state/kernel-state.ts'
import { runHooks } from '../hooks/hooks.ts'
import { askLogged } from '../model/ask.ts'
import { envContext } from '../secrets/vault.ts'
import { type Blob, isStoreError, type ThreadChange } from '../store/store.ts'
import { isEnabled, refuseDisabled } from '../thread/env.ts'
import {
  afterSpawn,
  missingVariables,
  planSpawn,
  variablesError,
  type NewChild,
  type SpawnPlan,
  refuseBeyondLimits,
} from '../children/spawn.ts'
import { payloadOf } from '../children/tools.ts'

/**
 * Creates the agent's immediate children, which start by themselves, after the thread was created or handed
 * to the agent (Standard Agents §7.6). In a new thread the `after_thread_created` hooks run first.
 */
export async function activate(context: DrainContext): Promise<void> {
  const { agent, state } = context
  if (state.immediateFor === undefined && state.entries.length === 0) {
    // A hook that both sides list runs once.
    const { a, b } = agent
    const sides = b ? [a, { ...b, hooks: b.hooks.filter((hook) => !a.hooks.includes(hook)) }] : [a]
    for (const side of sides) {
      const use = { side, name: 'after_thread_created', args: () => [] } as const
      await runHooks(context, use, undefined)
    }
  }
  const events: RuntimeEvent[] = []
  const others: ThreadChange[] = []
  const blobs: Blob[] = []
  const created: (readonly [SpawnPlan, ResolvedSide])[] = []
  for (const found of relationsOf(context)) {
    if (!found.relation.isImmediate) continue
    const plan = await planImmediate(context, found)
    events.push(...plan.events)
    others.push(...plan.others)
    blobs.push(...(plan.blobs ?? []))
    if (plan.reference !== '') created.push([plan, found.side])
  }
  // A stop may have cut off the request to the model for a child's first instruction. That is no failure: the
  // children are created later.
  if (context.signal.aborted) return
  events.push({ type: 'immediate_done', at: context.at(), agent: agent.name })
  await context.commit('activate', { events, others, blobs, isProgress: true })
  for (const [plan, side] of created) await afterSpawn(context, plan, side)
}

function relationsOf({ agent }: DrainContext): OwnedRelation[] {
  return [agent.a, agent.b].flatMap((side) =>
    (side?.prompt.tools ?? []).flatMap((tool) =>
      side && tool.kind === 'subagent' ? [{ agent, side, relation: tool.relation }] : [],
    ),
  )
}

/**
 * Plans a child that starts together with its parent. If it cannot start, the plan contains only the events
 * that record why.
 */
async function planImmediate(context: DrainContext, found: OwnedRelation): Promise<SpawnPlan> {
  const { side, relation } = found
  const env = context.env(side)
  const nothing = { reference: '', events: [], others: [] }
  const raised = (code: string, error: unknown): RuntimeEvent => {
    return { type: 'error_raised', at: context.at(), code, message: messageOf(error) }
  }
  if (relation.optional !== undefined && !isEnabled(env.get(relation.optional))) return nothing
  try {
    refuseBeyondLimits(context, relation)
  } catch (error) {
    return { ...nothing, events: [raised('SUBAGENT_REFUSED', error)] }
  }
  const missing = missingVariables(relation, env)
  if (missing.length === 0) return spawnImmediate(context, found)
  const { event, error } = variablesError(context, {
    relation,
    side,
    missing,
    args: {},
    attachments: [],
    toolName: relation.key,
    isImmediate: true,
  })
  return { ...nothing, events: [event, raised('SUBAGENT_ENV_REQUIRED', error)] }
}

/**
 * Plans a child that no call created, so that its result answers no call. If the child is blocking, the first
 * step of the parent waits for its result. If variables contain hints (a name, a task), the parent's model
 * writes the first instruction from them. These hints are the only variables that the model may see.
 */
async function spawnImmediate(
  context: DrainContext,
  { agent, side, relation }: OwnedRelation,
  provided?: NewChild['provided'],
): Promise<SpawnPlan> {
  const env = context.env(side, undefined, agent)
  const { key, nameEnv, descriptionEnv } = relation
  const [name, description] = [nameEnv, descriptionEnv].map((hint) =>
    hint === undefined ? undefined : (provided?.get(hint)?.value ?? env.get(hint)),
  )
  const events: RuntimeEvent[] = []
  const blobs: Blob[] = []
  let message = ''
  if (name !== undefined || description !== undefined) {
    const lines = [`Subagent: ${relation.agent}. ${relation.description}`]
    if (name !== undefined) lines.push(`Name: ${name}`)
    if (description !== undefined) lines.push(`Task: ${description}`)
    const system =
      'You write the first instruction for a subagent. Answer with the instruction alone.'
    const { turn, error, log } = await askLogged(context, side, { system, input: lines.join('\n') })
    events.push(...log.events)
    blobs.push(...log.blobs)
    if (turn) {
      const { text } = turn.response
      message = text.trim() === '' ? '' : text
    } else {
      // The description is used as the instruction, or `Begin.` if there is none.
      const why = `The first instruction of the subagent "${key}" could not be written: ${messageOf(error)}`
      const at = context.at()
      events.push({ type: 'error_raised', at, code: 'BOOTSTRAP_FAILED', message: why })
    }
  }
  const before = [...context.state.children.values()].filter(
    ({ created }) => created.relation === key,
  )
  const plan = planSpawn(context, {
    relation,
    agent,
    env,
    name: name ?? (relation.isResumable ? `${key} ${before.length + 1}` : undefined),
    message: message || (description ?? 'Begin.'),
    attachments: [],
    arguments: {},
    isAwaited: false,
    isImmediate: true,
    provided,
  })
  return { ...plan, events: [...plan.events, ...events], blobs: [...(plan.blobs ?? []), ...blobs] }
}

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
  const settled = (outcome: { reference: string } | { error: string }): RuntimeEvent => {
    return { type: 'variables_settled', at, requestId, ...outcome }
  }
  try {
    const found = requestedRelation(environment.registry, state, requested)
    if (!found) throw new Error(`"${requested.relation}" is no longer a subagent of "${name}".`)
    const { agent, side, relation } = found
    refuseDisabled(relation, context.env(side, undefined, agent))
    refuseBeyondLimits(context, relation)
    const plan = await planDeferred(context, found, { requested, provided })
    if (context.signal.aborted) return
    const { others, blobs = [] } = plan
    const events = [...plan.events, settled({ reference: plan.reference })]
    await context.commit('boot_child', { events, others, blobs, isProgress: true })
    await afterSpawn(context, plan, side)
  } catch (error) {
    if (!(error instanceof Error) || isStoreError(error)) throw error
    const events = [settled({ error: error.message })]
    await context.commit('boot_child', { events, isProgress: true })
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
