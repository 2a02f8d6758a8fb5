import { isPlainObject, type JsonSchema } from '@skein/base'
import type { Warning } from '@skein/ai'
import type { PlanStep } from '../plan-step.ts'

/** What the planner is asked for. */
export const defaultPlanSchema: JsonSchema = {
  type: 'object',
  properties: {
    steps: {
      type: 'array',
      items: {
        type: 'object',
        properties: {
          id: { type: 'string', description: 'A short name, unique in the plan.' },
          description: { type: 'string', description: 'What this step does.' },
          tool: { type: 'string', description: 'The tool to use, if one is needed.' },
          dependsOn: {
            type: 'array',
            items: { type: 'string' },
            description: 'Ids of the steps that must be completed first.',
          },
        },
        required: ['id', 'description', 'dependsOn'],
      },
    },
  },
  required: ['steps'],
}

/** A plan as the model proposed it, with everything that is wrong with it. */
export interface Proposal {
  readonly steps: readonly PlanStep[]
  /** Empty: the plan can be carried out. */
  readonly problems: readonly string[]
}

/** Reads untrusted data: `{ steps: […] }`, `{ plan: […] }` or the bare list. */
export function readProposal(data: unknown, done: readonly PlanStep[] = []): Proposal {
  const list = listOf(data)
  if (!list) return { steps: [], problems: ['It has no list of steps.'] }
  const problems: string[] = []
  const steps = list.flatMap((item, index): PlanStep[] => {
    const step = toStep(item)
    if (!step) problems.push(`Step ${index + 1} needs an id and a description.`)
    return step ? [step] : []
  })
  return { steps, problems: [...problems, ...checkSteps(steps, done)] }
}

function listOf(data: unknown): readonly unknown[] | undefined {
  if (Array.isArray(data)) return data
  if (!isPlainObject(data)) return undefined
  return [data['steps'], data['plan']].find((list) => Array.isArray(list))
}

function toStep(item: unknown): PlanStep | undefined {
  if (!isPlainObject(item)) return undefined
  const { id, description, tool, dependsOn, ...more } = item
  const name = typeof id === 'number' ? String(id) : id
  if (typeof name !== 'string' || name === '' || typeof description !== 'string') return undefined
  const needed = Array.isArray(dependsOn) ? dependsOn.map(String) : []
  return {
    ...more, // a schema of the application's own may say more about a step
    id: name,
    description,
    ...(typeof tool === 'string' && tool !== '' && { tool }),
    dependsOn: needed,
    status: 'pending',
  }
}

function checkSteps(steps: readonly PlanStep[], done: readonly PlanStep[]): string[] {
  const problems: string[] = []
  const ids = new Set<string>()
  for (const { id } of steps) {
    if (ids.has(id)) problems.push(`Two steps have the id "${id}".`)
    ids.add(id)
  }
  for (const { id } of done) ids.add(id)
  for (const { id, dependsOn } of steps)
    for (const other of dependsOn)
      if (!ids.has(other)) problems.push(`"${id}" depends on "${other}", which is no step.`)
  if (problems.length > 0) return problems
  const ordered = new Set(inOrder(steps, done).map(({ id }) => id))
  const cycle = steps.filter(({ id }) => !ordered.has(id)).map(({ id }) => `"${id}"`)
  return cycle.length > 0 ? [`The steps ${cycle.join(', ')} wait for each other.`] : []
}

/** The steps that can be carried out, each after those it depends on, else as they were listed. */
export function inOrder(steps: readonly PlanStep[], done: readonly PlanStep[]): PlanStep[] {
  const finished = new Set(done.map(({ id }) => id))
  const left = [...steps]
  const ordered: PlanStep[] = []
  for (;;) {
    const index = left.findIndex(({ dependsOn }) => dependsOn.every((id) => finished.has(id)))
    if (index < 0) return ordered
    const [step] = left.splice(index, 1)
    ordered.push(step!)
    finished.add(step!.id)
  }
}

/** At most `limit` steps, none of which depends on one that was cut off (A11). */
export function cutPlan(
  steps: readonly PlanStep[],
  done: readonly PlanStep[],
  limit: number,
): readonly PlanStep[] {
  if (steps.length <= limit) return steps
  const kept = new Set(inOrder(steps, done).slice(0, limit))
  return steps.filter((step) => kept.has(step))
}

/** A new plan after the completed steps of the old one; ids that clash are changed. */
export function joinPlans(
  completed: readonly PlanStep[],
  steps: readonly PlanStep[],
): readonly PlanStep[] {
  const taken = new Set(completed.map(({ id }) => id))
  const renamed = new Map<string, string>()
  const all = new Set([...taken, ...steps.map(({ id }) => id)])
  for (const { id } of steps) {
    if (!taken.has(id)) continue
    let count = 2
    while (all.has(`${id}-${count}`)) count++
    renamed.set(id, `${id}-${count}`)
    all.add(`${id}-${count}`)
  }
  const named = (id: string): string => renamed.get(id) ?? id
  const added = steps.map((step) => ({
    ...step,
    id: named(step.id),
    dependsOn: step.dependsOn.map(named),
  }))
  return [...completed, ...added]
}

/** A10: a tool that is not there is no reason to refuse the plan. */
export function unknownTools(steps: readonly PlanStep[], tools: ReadonlySet<string>): Warning[] {
  return steps.flatMap(({ id, tool }) =>
    tool === undefined || tools.has(tool)
      ? []
      : [
          {
            code: 'unknown_plan_tool',
            message: `The plan's step "${id}" names the tool "${tool}", which is not one of the agent's.`,
          },
        ],
  )
}
