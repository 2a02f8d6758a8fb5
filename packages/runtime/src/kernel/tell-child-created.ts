import type { ResolvedSide } from '../definitions/resolved.ts'
import type { DrainContext } from './drain-context.ts'
import { runHooks } from './run-hooks.ts'
import type { SpawnPlan } from './spawn.ts'

/** Tells the hooks of a child that was created, once it is. A message to one that was there is none. */
export async function tellChildCreated(
  context: DrainContext,
  plan: SpawnPlan | undefined,
  side: ResolvedSide = context.agent.a,
): Promise<void> {
  if (!plan?.others.some(({ create }) => create)) return
  const { reference } = plan
  const name = context.state.children.get(reference)?.created.name ?? ''
  const child = { reference, name }
  await runHooks(context, { side, name: 'after_subagent_created', args: () => [child] }, undefined)
}
