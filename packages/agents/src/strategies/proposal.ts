import type { Warning } from '@skein/ai'
import { isPlainObject, type JsonSchema } from '@skein/base'
import type { PlanStep } from '../state/state-types.ts'

/** The schema of a plan, unless the application has its own. */
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

/** A plan as the model proposed it, with all its problems. */
export interface Proposal {
  readonly steps: readonly PlanStep[]
  /** Empty if the plan can be carried out. */
  readonly problems: readonly string[]
}

/** Reads a plan from untrusted data: `{ steps: […] }`, `{ plan: […] }` or a plain list. */
export function readProposal(data: unknown, done: readonly PlanStep[] = []): Proposal {
  const lists = isPlainObject(data) ? [data['steps'], data['plan']] : [data]
  const list = lists.find((one): one is unknown[] => Array.isArray(one))
  if (!list) return { steps: [], problems: ['It has no list of steps.'] }
  const problems: string[] = []
  const steps = list.flatMap((item, index): PlanStep[] => {
    const step = toStep(item)
    if (!step) problems.push(`Step ${index + 1} needs an id and a description.`)
    return step ? [step] : []
  })
  return { steps, problems: [...problems, ...checkSteps(steps, done)] }
}

function toStep(item: unknown): PlanStep | undefined {
  if (!isPlainObject(item)) return undefined
  const { id, description, tool, dependsOn, ...more } = item
  const name = typeof id === 'number' ? String(id) : id
  if (typeof name !== 'string' || name === '' || typeof description !== 'string') return undefined
  return {
    ...more, // an application's schema may define more fields of a step
    id: name,
    description,
    tool: typeof tool === 'string' && tool !== '' ? tool : undefined,
    // Some models write one id instead of a list, or an empty text for none.
    dependsOn: [dependsOn ?? []].flat().map(String).filter(Boolean),
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
      if (!ids.has(other)) problems.push(`"${id}" depends on "${other}", which is not a step.`)
  if (problems.length > 0) return problems
  const order = new Set(dependencyOrder(steps, done).map(({ id }) => id))
  const cycle = steps.filter(({ id }) => !order.has(id)).map(({ id }) => `"${id}"`)
  return cycle.length > 0 ? [`The steps ${cycle.join(', ')} wait for each other.`] : []
}

/** Returns the steps that can be carried out, each after its dependencies, otherwise in the given order. */
export function dependencyOrder(steps: readonly PlanStep[], done: readonly PlanStep[]): PlanStep[] {
  const doneIds = new Set(done.map(({ id }) => id))
  const rest = [...steps]
  const order: PlanStep[] = []
  for (;;) {
    const index = rest.findIndex(({ dependsOn }) => dependsOn.every((id) => doneIds.has(id)))
    if (index < 0) return order
    const [step] = rest.splice(index, 1)
    order.push(step!)
    doneIds.add(step!.id)
  }
}

/** Returns at most `limit` steps, none of which depends on a removed step. */
export function cutPlan(
  steps: readonly PlanStep[],
  done: readonly PlanStep[],
  limit: number,
): readonly PlanStep[] {
  if (steps.length <= limit) return steps
  const planSteps = new Set(dependencyOrder(steps, done).slice(0, limit))
  return steps.filter((step) => planSteps.has(step))
}

/**
 * Appends a new plan to the completed and failed steps of the old one; a new step whose id is already in use
 * gets another id.
 */
export function joinPlans(
  ended: readonly PlanStep[],
  steps: readonly PlanStep[],
): readonly PlanStep[] {
  const usedIds = new Set(ended.map(({ id }) => id))
  const newIds = new Map<string, string>()
  const all = new Set([...usedIds, ...steps.map(({ id }) => id)])
  for (const { id } of steps) {
    if (!usedIds.has(id)) continue
    let count = 2
    while (all.has(`${id}-${count}`)) count++
    newIds.set(id, `${id}-${count}`)
    all.add(`${id}-${count}`)
  }
  const idOf = (id: string): string => newIds.get(id) ?? id
  const newSteps = steps.map((step) => ({
    ...step,
    id: idOf(step.id),
    dependsOn: step.dependsOn.map(idOf),
  }))
  return [...ended, ...newSteps]
}

/** Returns warnings for steps that name an unknown tool. The plan may work without it. */
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
