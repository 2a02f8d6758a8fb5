import type { JsonObject } from '@skein/base'
import { llm } from '@skein/ai'
import type { Relation, ResolvedSide } from '../definitions/resolved.ts'
import type { RuntimeEvent } from '../event.ts'
import { isEnabled } from '../services/env-reader.ts'
import { envContext } from '../services/vault.ts'
import type { ThreadChange } from '../store/store.ts'
import type { DrainContext } from './drain-context.ts'
import { messageOf } from './message-of.ts'
import { missingVariables, variablesError } from './missing-variables.ts'
import { runHooks } from './run-hooks.ts'
import { planSpawn, type SpawnPlan } from './spawn.ts'
import { payloadOf, refuseBeyondLimits } from './subagent-tools.ts'

/** A prompt became active: by creation of the thread, or by a handoff (§7.6). */
export async function activate(context: DrainContext): Promise<void> {
  const { agent, state } = context
  if (state.immediateFor === undefined)
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
  for (const plan of created) await tellHooks(context, plan)
}

function immediateRelations({ agent }: DrainContext): { side: ResolvedSide; relation: Relation }[] {
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
  const args: JsonObject = {}
  const missing = missingVariables(relation, env)
  if (missing.length > 0) {
    const { event, error } = variablesError(context, {
      relation,
      missing,
      args,
      toolName: relation.key,
    })
    return {
      ...nothing,
      events: [event, raised(context, 'SUBAGENT_ENV_REQUIRED', messageOf(error))],
    }
  }
  const hints = hintsOf(relation, env)
  const derived = hints.hasHints
    ? await bootstrap(context, side, { relation, ...hints })
    : undefined
  const isAwaited = false // it answers no call; a blocking one is waited for by the first step
  return planSpawn(context, {
    relation,
    env,
    name: derived?.name ?? hints.name ?? (relation.isResumable ? `${relation.key} 1` : undefined),
    message: derived?.message ?? hints.description ?? 'Begin.',
    attachments: [],
    arguments: args,
    isAwaited,
    isImmediate: true,
  })
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
): Promise<{ readonly name?: string; readonly message: string } | undefined> {
  const { clock, ids } = context.environment
  const { model, definition } = side.prompt.models[0]!
  const asked = llm({
    model,
    signal: context.signal,
    clock,
    ids,
    system: 'You write the first instruction for a subagent. Answer with the instruction alone.',
    ...(definition?.config && { config: definition.config }),
    ...(definition?.providerOptions && { params: definition.providerOptions }),
  })
  const lines = [
    `Subagent: ${relation.agent}. ${relation.description}`,
    ...(name === undefined ? [] : [`Name: ${name}`]),
    ...(description === undefined ? [] : [`Task: ${description}`]),
  ]
  try {
    const { text } = (await asked.generate(lines.join('\n'))).response
    return text.trim() === '' ? undefined : { ...(name !== undefined && { name }), message: text }
  } catch {
    return undefined // the hints themselves are instruction enough
  }
}

async function tellHooks(context: DrainContext, { reference }: SpawnPlan): Promise<void> {
  const name = context.state.children.get(reference)?.created.name ?? ''
  const child = { reference, name }
  await runHooks(
    context,
    { side: context.agent.a, name: 'after_subagent_created', args: () => [child] },
    undefined,
  )
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
    refuseBeyondLimits(context, found.relation)
    const plan = planDeferred(context, found, { requested, values: openValues(context, provided) })
    const events = [...plan.events, settled({ reference: plan.reference })]
    await context.commit('boot_child', { events, others: plan.others, isProgress: true })
    await tellHooks(context, plan)
  } catch (error) {
    if (!(error instanceof Error) || 'code' in error) throw error
    await context.commit('boot_child', {
      events: [settled({ error: error.message })],
      isProgress: true,
    })
  }
}

function findRelation(
  { agent }: DrainContext,
  key: string,
): { side: ResolvedSide; relation: Relation } | undefined {
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

function planDeferred(
  context: DrainContext,
  { side, relation }: { readonly side: ResolvedSide; readonly relation: Relation },
  {
    requested,
    values,
  }: { readonly requested: { readonly arguments: JsonObject }; readonly values: Values },
): SpawnPlan {
  const args = requested.arguments
  const payload = payloadOf(relation, args)
  return planSpawn(context, {
    relation,
    env: context.env(side),
    isAwaited: false,
    provided: values,
    ...payload,
  })
}
