import { messageOf } from '@skein/base'
import { spawnImmediate } from './spawn-immediate.ts'
import { afterSpawn, type SpawnPlan, refuseBeyondLimits } from '../children/spawn.ts'
import { missingVariables, variablesError } from '../children/missing-variables.ts'
import type { DrainContext } from '../context/drain-context.ts'
import type { RuntimeEvent } from '../contract/event.ts'
import type { ResolvedSide } from '../definitions/resolved.ts'
import { runHooks } from '../hooks/hooks.ts'
import { isEnabled } from '../thread/env.ts'
import type { OwnedRelation } from '../state/variables.ts'
import type { Blob, ThreadChange } from '../store/commit.ts'

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
  const plans: (readonly [SpawnPlan, ResolvedSide])[] = []
  for (const owned of relationsOf(context)) {
    if (!owned.relation.isImmediate) continue
    const plan = await planImmediate(context, owned)
    events.push(...plan.events)
    others.push(...plan.others)
    blobs.push(...(plan.blobs ?? []))
    if (plan.reference !== '') plans.push([plan, owned.side])
  }
  // A stop may have cut off the request to the model for a child's first instruction. That is no failure: the
  // children are created later.
  if (context.signal.aborted) return
  events.push({ type: 'immediate_done', at: context.at(), agent: agent.name })
  await context.commit('activate', { kind: 'outcome', events, others, blobs })
  for (const [plan, side] of plans) await afterSpawn(context, plan, side)
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
  const failure = (code: string, error: unknown): RuntimeEvent => {
    return { type: 'error_raised', at: context.at(), code, message: messageOf(error) }
  }
  if (relation.optional !== undefined && !isEnabled(env.get(relation.optional))) return nothing
  try {
    refuseBeyondLimits(context, relation)
  } catch (error) {
    return { ...nothing, events: [failure('SUBAGENT_REFUSED', error)] }
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
  return { ...nothing, events: [event, failure('SUBAGENT_ENV_REQUIRED', error)] }
}
