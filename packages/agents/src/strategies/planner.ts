import { isPlainObject, type JsonSchema } from '@skein/base'
import type { LLMInstance, LLMOptions, Tool, Turn, Warning } from '@skein/ai'
import { invalidUse } from '../contract/agent-error.ts'
import type { PlanStep } from '../state/state-types.ts'

/** A model that makes plans, and a function that finds the plan in its answer. */
export interface Planner {
  readonly llm: LLMInstance
  /** Returns the data of the plan in an answer. */
  readonly read: (turn: Turn) => unknown
}

const SUBMIT = 'submit_plan'

/**
 * Makes a planner for a model: with structured output if the vendor supports it, otherwise with a private
 * tool. An opaque model (one that only has `generate` and `stream`) does not report its capabilities, so the
 * plan is read from the JSON in its text.
 */
export function plannerOf(llm: LLMInstance, schema: JsonSchema): Planner {
  if (typeof llm.with !== 'function') return { llm, read: readText }
  const { structuredOutput, tools } = llm.capabilities
  if (structuredOutput)
    return { llm: bareModel(llm, { structure: schema }), read: ({ data }) => data }
  if (!tools)
    throw invalidUse(
      `plan() needs structured output or tools, and "${llm.model.provider}" has neither.`,
      'Use loop() or react() with this model.',
    )
  const submit: Tool = {
    name: SUBMIT,
    description: 'Submits the plan. Call it exactly once.',
    parameters: schema,
    run: () => undefined,
  }
  return {
    llm: bareModel(llm, { tools: [submit] }),
    read: ({ response }) =>
      response.toolCalls?.find(({ toolName }) => toolName === SUBMIT)?.arguments,
  }
}

/**
 * Returns the model without tools and structure, or with different ones. A model with only `generate` and
 * `stream` is returned unchanged.
 */
export function bareModel(
  llm: LLMInstance,
  changes: Pick<LLMOptions, 'tools' | 'structure'> = {},
): LLMInstance {
  if (typeof llm.with !== 'function') return llm
  const none = {
    tools: [],
    toolChoice: undefined,
    structure: undefined,
    validate: false,
    repair: undefined,
  }
  return llm.with({ ...none, ...changes })
}

/**
 * Returns the structured data of an answer; without any, parses its text from the first bracket to the last
 * as JSON.
 */
function readText({ response, data }: Turn): unknown {
  if (data !== undefined) return data
  const { text } = response
  const start = text.search(/[[{]/)
  const end = Math.max(text.lastIndexOf('}'), text.lastIndexOf(']'))
  if (start < 0 || end < start) return undefined
  try {
    return JSON.parse(text.slice(start, end + 1))
  } catch {
    return undefined // the brackets were part of ordinary text; the model is asked again for a plan
  }
}

/**
 * Returns the prompt that asks for a plan. It names the tools, because no tools are offered while planning.
 */
export function planPrompt(tools: readonly Tool[], maxPlanSteps: number): string {
  return [
    'Make a plan for this task: a list of steps, each with an id, a description, the ids of the steps it depends on and, if it needs one, the tool to use. Do not carry it out yet. If no steps are needed, give an empty list.',
    ...toolsAndLimit(tools, maxPlanSteps),
  ].join('\n')
}

/** Returns the prompt that asks for a corrected plan. */
export function repairPrompt(problems: readonly string[]): string {
  return ['That plan cannot be carried out:', ...bullets(problems), 'Give a corrected plan.'].join(
    '\n',
  )
}

/**
 * Returns the prompt that asks for another plan after a failed step: what happened so far, and what is left.
 */
export function replanPrompt(options: {
  readonly goal: string
  readonly completed: readonly PlanStep[]
  readonly failed: PlanStep
  readonly reason: string
  readonly tools: readonly Tool[]
  readonly maxPlanSteps: number
}): string {
  const { goal, completed, failed, reason, tools, maxPlanSteps } = options
  const done = completed.map(({ id, description }) => `${id}: ${description}`)
  return [
    `The step "${failed.id}" (${failed.description}) failed: ${reason}`,
    `The goal is still: ${goal}`,
    ...(done.length > 0 ? ['Completed so far:', ...bullets(done)] : ['Nothing is completed yet.']),
    'Make a new plan for what is left to do.',
    ...toolsAndLimit(tools, maxPlanSteps),
  ].join('\n')
}

function toolsAndLimit(tools: readonly Tool[], maxPlanSteps: number): string[] {
  const named = tools.map(({ name, description }) => `${name}: ${description}`)
  const limit = Number.isFinite(maxPlanSteps) ? [`At most ${maxPlanSteps} steps.`] : []
  return [...(named.length > 0 ? ['Tools:', ...bullets(named)] : []), ...limit]
}

function bullets(lines: readonly string[]): string[] {
  return lines.map((line) => `- ${line}`)
}

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
  const ordered = new Set(dependencyOrder(steps, done).map(({ id }) => id))
  const cycle = steps.filter(({ id }) => !ordered.has(id)).map(({ id }) => `"${id}"`)
  return cycle.length > 0 ? [`The steps ${cycle.join(', ')} wait for each other.`] : []
}

/** Returns the steps that can be carried out, each after its dependencies, otherwise in the given order. */
export function dependencyOrder(steps: readonly PlanStep[], done: readonly PlanStep[]): PlanStep[] {
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

/** Returns at most `limit` steps, none of which depends on a removed step. */
export function cutPlan(
  steps: readonly PlanStep[],
  done: readonly PlanStep[],
  limit: number,
): readonly PlanStep[] {
  if (steps.length <= limit) return steps
  const kept = new Set(dependencyOrder(steps, done).slice(0, limit))
  return steps.filter((step) => kept.has(step))
}

/**
 * Appends a new plan to the completed and failed steps of the old one; a new step whose id is already in use
 * gets another id.
 */
export function joinPlans(
  ended: readonly PlanStep[],
  steps: readonly PlanStep[],
): readonly PlanStep[] {
  const taken = new Set(ended.map(({ id }) => id))
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
  return [...ended, ...added]
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
