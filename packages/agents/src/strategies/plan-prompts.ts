import type { Tool } from '@skein/ai'
import type { PlanStep } from '../plan-step.ts'

/** Asks for a plan. The tools are named, because planning offers none (A7). */
export function planPrompt(tools: readonly Tool[], maxPlanSteps: number): string {
  return [
    'Make a plan for this task: a list of steps, each with an id, a description, the ids of the steps it depends on and, if it needs one, the tool to use. Do not carry it out yet. If no steps are needed, give an empty list.',
    ...toolList(tools),
    ...limitText(maxPlanSteps),
  ].join('\n')
}

export function repairPrompt(problems: readonly string[]): string {
  return ['That plan cannot be carried out:', ...bullets(problems), 'Give a corrected plan.'].join(
    '\n',
  )
}

/** What happened so far and why there must be another plan (A12). */
export function replanPrompt(options: {
  readonly goal: string
  readonly completed: readonly PlanStep[]
  readonly failed: PlanStep
  readonly reason: string
  readonly tools: readonly Tool[]
  readonly maxPlanSteps: number
}): string {
  const { goal, completed, failed, reason, tools, maxPlanSteps } = options
  return [
    `The step "${failed.id}" (${failed.description}) failed: ${reason}`,
    `The goal is still: ${goal}`,
    ...(completed.length > 0
      ? ['Completed so far:', ...bullets(completed.map(describe))]
      : ['Nothing is completed yet.']),
    'Make a new plan for what is left to do.',
    ...toolList(tools),
    ...limitText(maxPlanSteps),
  ].join('\n')
}

export function stepPrompt(step: PlanStep): string {
  const tool = step.tool === undefined ? '' : ` Use the tool "${step.tool}".`
  return `Carry out step "${step.id}" of the plan: ${step.description}${tool}`
}

function describe({ id, description }: PlanStep): string {
  return `${id}: ${description}`
}

function toolList(tools: readonly Tool[]): string[] {
  if (tools.length === 0) return []
  return ['Tools:', ...bullets(tools.map(({ name, description }) => `${name}: ${description}`))]
}

function limitText(maxPlanSteps: number): string[] {
  return Number.isFinite(maxPlanSteps) ? [`At most ${maxPlanSteps} steps.`] : []
}

function bullets(lines: readonly string[]): string[] {
  return lines.map((line) => `- ${line}`)
}
