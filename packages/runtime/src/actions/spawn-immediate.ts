import { messageOf } from '@skein/base'
import { planSpawn, type NewChild, type SpawnPlan } from '../children/spawn.ts'
import type { DrainContext } from '../context/drain-context.ts'
import type { RuntimeEvent } from '../contract/event.ts'
import { askLogged } from '../model/ask-logged.ts'
import type { OwnedRelation } from '../state/variables.ts'
import type { Blob } from '../store/commit.ts'

/**
 * Plans a child that no call created, so that its result answers no call. If the child is blocking, the first
 * step of the parent waits for its result. If variables contain hints (a name, a task), the parent's model
 * writes the first instruction from them. These hints are the only variables that the model may see.
 */
export async function spawnImmediate(
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
