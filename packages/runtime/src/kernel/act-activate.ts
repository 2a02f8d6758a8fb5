import type { Relation, ResolvedSide } from '../definitions/resolved.ts'
import type { RuntimeEvent, VariablesRequested } from '../event.ts'
import { isEnabled } from '../services/env-reader.ts'
import { envContext } from '../services/vault.ts'
import { isStoreError, type ThreadChange } from '../store/store.ts'
import type { DrainContext } from './drain-context.ts'
import { messageOf } from './message-of.ts'
import { missingVariables, variablesError } from './missing-variables.ts'
import { runHooks } from './run-hooks.ts'
import { sideModel } from './side-model.ts'
import { planSpawn, type NewChild, type SpawnPlan } from './spawn.ts'
import { payloadOf, refuseBeyondLimits } from './subagent-tools.ts'
import { tellChildCreated } from './tell-child-created.ts'
import { spentOn } from './usage.ts'

/** A prompt became active: by creation of the thread, or by a handoff (§7.6). */
export async function activate(context: DrainContext): Promise<void> {
  const { agent, state } = context
  if (state.immediateFor === undefined && state.entries.length === 0)
    await runHooks(
      context,
      { side: agent.a, name: 'after_thread_created', args: () => [] },
      undefined,
    )
  const events: RuntimeEvent[] = []
  const others: ThreadChange[] = []
  const created: SpawnPlan[] = []
  for (const { side, relation } of immediateRelations(context)) {
    const plan = await planImmediate(context, side, relation)
    events.push(...plan.events)
    others.push(...plan.others)
    if (plan.reference !== '') created.push(plan)
  }
  events.push({ type: 'immediate_done', at: context.at(), agent: agent.name })
  await context.commit('activate', { events, others, isProgress: true })
  for (const plan of created) await tellChildCreated(context, plan)
}

function immediateRelations({ agent }: DrainContext): Found[] {
  return [agent.a, agent.b].flatMap((side) =>
    (side?.prompt.tools ?? []).flatMap((tool) => {
      if (!side || tool.kind !== 'subagent' || !tool.relation.isImmediate) return []
      return [{ side, relation: tool.relation }]
    }),
  )
}

async function planImmediate(
  context: DrainContext,
  side: ResolvedSide,
  relation: Relation,
): Promise<SpawnPlan> {
  const env = context.env(side)
  const nothing = { reference: '', events: [], others: [] }
  if (relation.optional !== undefined && !isEnabled(env.get(relation.optional))) return nothing
  try {
    refuseBeyondLimits(context, relation)
  } catch (error) {
    return { ...nothing, events: [raised(context, 'SUBAGENT_REFUSED', messageOf(error))] }
  }
  const missing = missingVariables(relation, env)
  if (missing.length > 0) {
    const { event, error } = variablesError(context, {
      relation,
      missing,
      args: {},
      attachments: [],
      toolName: relation.key,
      isImmediate: true,
    })
    return {
      ...nothing,
      events: [event, raised(context, 'SUBAGENT_ENV_REQUIRED', messageOf(error))],
    }
  }
  return spawnImmediate(context, side, { relation })
}

/** A child that nobody called. It answers no call; a blocking one is waited for by the first step. */
async function spawnImmediate(
  context: DrainContext,
  side: ResolvedSide,
  { relation, provided }: Pick<NewChild, 'relation' | 'provided'>,
): Promise<SpawnPlan> {
  const env = context.env(side)
  const hints = hintsOf(relation, env)
  const derived = hints.hasHints
    ? await bootstrap(context, side, { relation, ...hints })
    : undefined
  const plan = planSpawn(context, {
    relation,
    env,
    name: hints.name ?? (relation.isResumable ? numbered(context, relation) : undefined),
    message: derived?.message ?? hints.description ?? 'Begin.',
    attachments: [],
    arguments: {},
    isAwaited: false,
    isImmediate: true,
    ...(provided && { provided }),
  })
  return { ...plan, events: [...plan.events, ...(derived?.events ?? [])] }
}

/** A name for an instance that nobody named. */
function numbered({ state }: DrainContext, { key }: Relation): string {
  const before = [...state.children.values()].filter(({ created }) => created.relation === key)
  return `${key} ${before.length + 1}`
}

function raised(context: DrainContext, code: string, message: string): RuntimeEvent {
  return { type: 'error_raised', at: context.at(), code, message }
}

interface Hints {
  readonly name: string | undefined
  readonly description: string | undefined
  readonly hasHints: boolean
}

/** The only values of variables that a bootstrap model may see. */
function hintsOf(
  { nameEnv, descriptionEnv }: Relation,
  env: { get(name: string): string | undefined },
): Hints {
  const name = nameEnv === undefined ? undefined : env.get(nameEnv)
  const description = descriptionEnv === undefined ? undefined : env.get(descriptionEnv)
  return { name, description, hasHints: name !== undefined || description !== undefined }
}

/** Asks the model for the child's first message; it sees the hints and nothing else. */
async function bootstrap(
  context: DrainContext,
  side: ResolvedSide,
  { relation, name, description }: Hints & { readonly relation: Relation },
): Promise<{ readonly message?: string; readonly events: readonly RuntimeEvent[] } | undefined> {
  const asked = sideModel(context, side, {
    system: 'You write the first instruction for a subagent. Answer with the instruction alone.',
  })
  const lines = [
    `Subagent: ${relation.agent}. ${relation.description}`,
    ...(name === undefined ? [] : [`Name: ${name}`]),
    ...(description === undefined ? [] : [`Task: ${description}`]),
  ]
  try {
    const { response, usage } = await asked.generate(lines.join('\n'))
    const spent = spentOn(side.prompt.models[0]!, usage, context.at())
    return { events: [spent], ...(response.text.trim() !== '' && { message: response.text }) }
  } catch {
    return undefined // the hints themselves are instruction enough
  }
}

/** Creates a child whose variables came later, with the payload of the original call (§7.8). */
export async function bootChild(context: DrainContext, requestId: string): Promise<void> {
  const { state, agent } = context
  const pending = state.variables.get(requestId)
  if (!pending?.provided) return
  const { requested, provided } = pending
  const found = findRelation(context, requested.relation)
  const at = context.at()
  const settled = (outcome: { reference: string } | { error: string }): RuntimeEvent => ({
    type: 'variables_settled',
    at,
    requestId,
    ...outcome,
  })
  if (!found) {
    const error = `"${requested.relation}" is no longer a subagent of "${agent.name}".`
    return context.commit('boot_child', { events: [settled({ error })], isProgress: true })
  }
  try {
    refuseDisabled(context, found)
    refuseBeyondLimits(context, found.relation)
    const values = openValues(context, provided)
    const plan = await planDeferred(context, found, { requested, values })
    const events = [...plan.events, settled({ reference: plan.reference })]
    await context.commit('boot_child', { events, others: plan.others, isProgress: true })
    await tellChildCreated(context, plan)
  } catch (error) {
    if (!(error instanceof Error) || isStoreError(error)) throw error
    await context.commit('boot_child', {
      events: [settled({ error: error.message })],
      isProgress: true,
    })
  }
}

function refuseDisabled(context: DrainContext, { side, relation }: Found): void {
  const { optional, key } = relation
  if (optional !== undefined && !isEnabled(context.env(side).get(optional)))
    throw new Error(`"${key}" is switched off by ${optional}.`)
}

interface Found {
  readonly side: ResolvedSide
  readonly relation: Relation
}

function findRelation({ agent }: DrainContext, key: string): Found | undefined {
  for (const side of [agent.a, agent.b])
    for (const tool of side?.prompt.tools ?? [])
      if (side && tool.kind === 'subagent' && tool.relation.key === key)
        return { side, relation: tool.relation }
  return undefined
}

type Values = ReadonlyMap<string, { readonly type: 'text' | 'secret'; readonly value: string }>

function openValues(
  { environment, head }: DrainContext,
  {
    values,
  }: { readonly values: Readonly<Record<string, { valueType: 'text' | 'secret'; value: string }>> },
): Values {
  const opened = Object.entries(values).map(([name, { valueType, value }]) => {
    const open =
      valueType === 'secret' ? environment.vault.open(value, envContext(head.id, name)) : value
    return [name, { type: valueType, value: open }] as const
  })
  return new Map(opened)
}

async function planDeferred(
  context: DrainContext,
  { side, relation }: Found,
  { requested, values }: { readonly requested: VariablesRequested; readonly values: Values },
): Promise<SpawnPlan> {
  if (requested.isImmediate) return spawnImmediate(context, side, { relation, provided: values })
  return planSpawn(context, {
    relation,
    env: context.env(side),
    isAwaited: false,
    provided: values,
    ...(await payloadOf(context, relation, requested.arguments)),
    attachments: requested.attachments ?? [],
  })
}
