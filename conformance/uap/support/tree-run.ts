/** A tree of agents three levels deep with approvals and parallel children, for crash tests. */
import {
  agent,
  AgentState,
  subagent,
  type Agent,
  type AgentContext,
  type Answers,
  type GenerateResult,
} from '@skein/agents'
import type { CheckpointStore } from '@skein/agents/checkpoint'
import { defer, type Tool } from '@skein/ai'
import { calls, says, scripted, type ScriptFunction } from '@skein/ai/testing'

/** What each level does: the effects of its rounds, and how many children work side by side. */
export interface TreePlan {
  readonly topRounds: number
  readonly children: number
  readonly leaves: number
  readonly asks: boolean
}

export interface TreeWorld {
  readonly plan: TreePlan
  readonly store: CheckpointStore
  /** Called where the process may die: before and after each effect of the outside world. */
  readonly point: () => Promise<void>
  /** What happened outside, in order: `effect <key>` and `recorded <key>`. It survives every crash. */
  readonly log: string[]
}

const parameters = { type: 'object' }

/**
 * Returns the effects, each once. An effect that was under way when the process died may be repeated, under
 * the same key; one whose result was recorded must not be.
 */
export function effectsOf(log: readonly string[]): string[] {
  const recorded = new Set<string>()
  const effects = new Set<string>()
  for (const line of log) {
    const [what, key = ''] = line.split(' ')
    if (what === 'recorded') recorded.add(key)
    else if (recorded.has(key))
      throw new Error(`The effect ${key} was repeated after it was recorded.`)
    else effects.add(key)
  }
  return [...effects].sort()
}

/** Rounds of calls by the number of results in the history, then an answer. */
function rounds(...steps: readonly (readonly (readonly [string, string])[])[]): ScriptFunction {
  return ({ messages }) => {
    const done = messages.filter(({ type }) => type === 'tool_result').length
    const step = steps[done]
    if (!step) return says(`${done} rounds are done.`)
    return step.map(([name, id]) => calls(name, {}, { id }))
  }
}

/** One process: the agents over the store of the world. */
export function plantTree(world: TreeWorld): Agent {
  const { plan, store: checkpoints, point, log } = world
  const act: Tool = {
    name: 'act',
    description: 'Does something that must not be done twice.',
    parameters,
    run: async (_: unknown, { idempotencyKey }: AgentContext) => {
      await point()
      log.push(`effect ${idempotencyKey}`)
      return { done: idempotencyKey }
    },
  }
  const pay: Tool = {
    ...act,
    name: 'pay',
    approval: () => !plan.asks || defer({ kind: 'approval', request: { pay: 1 } }),
  }
  // One call at a time in each agent that acts: then no effect is under way when the process dies.
  const toolStrategy = { maxConcurrency: 1 }
  const model = (script: ScriptFunction) =>
    scripted(async (request, index) => {
      await point()
      return script(request, index)
    })
  const options = { checkpoints, durability: 'sync' as const }
  const leaf = agent({
    ...options,
    toolStrategy,
    model: model(
      rounds(
        [
          ['act', 'l1'],
          ['pay', 'l2'],
        ],
        [['act', 'l3']],
      ),
    ),
    tools: [act, pay],
  })
  const ids = (name: string, count: number) =>
    Array.from({ length: count }, (_, index) => [name, `${name}${index}`] as const)
  const work = (name: string, its: Agent): Tool =>
    subagent({ name, description: 'd', parameters, agent: its, prompt: () => 'work' })
  const middle = agent({
    ...options,
    model: model(rounds(ids('leaf', plan.leaves), [['pay', 'm1']])),
    tools: [pay, work('leaf', leaf)],
  })
  const last = Array.from({ length: plan.topRounds }, (_, index) => [['act', `t${index}`] as const])
  return agent({
    ...options,
    model: model(rounds(ids('middle', plan.children), ...last)),
    tools: [act, work('middle', middle)],
    sessionId: 'tree',
  })
}

/**
 * One life of a process: starts or resumes the session, asks a person about every interrupt, and continues
 * until the work is done. `asked` is the person's own memory: it survives.
 */
export async function liveTree(world: TreeWorld, asked: string[]): Promise<GenerateResult> {
  const top = plantTree(world)
  const saved = await world.store.load('tree')
  let result = saved
    ? await top.resume(AgentState.fromJSON(saved))
    : await top.generate('do it', AgentState.initial())
  while (result.interrupts) {
    const answers: Answers = Object.fromEntries(
      result.interrupts.map(({ id }) => [id, { type: 'approve' as const }]),
    )
    asked.push(...Object.keys(answers))
    result = await top.resume(result.state, answers)
  }
  await top.flush()
  return result
}
