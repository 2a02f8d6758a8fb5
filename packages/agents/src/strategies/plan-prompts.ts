import type { Tool } from '@skein/ai'
import type { PlanStep } from '../state/state-types.ts'

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
  const lines = completed.map(({ id, description }) => `${id}: ${description}`)
  return [
    `The step "${failed.id}" (${failed.description}) failed: ${reason}`,
    `The goal is still: ${goal}`,
    ...(lines.length > 0
      ? ['Completed so far:', ...bullets(lines)]
      : ['Nothing is completed yet.']),
    'Make a new plan for what is left to do.',
    ...toolsAndLimit(tools, maxPlanSteps),
  ].join('\n')
}

function toolsAndLimit(tools: readonly Tool[], maxPlanSteps: number): string[] {
  const toolLines = tools.map(({ name, description }) => `${name}: ${description}`)
  const limit = Number.isFinite(maxPlanSteps) ? [`At most ${maxPlanSteps} steps.`] : []
  return [...(toolLines.length > 0 ? ['Tools:', ...bullets(toolLines)] : []), ...limit]
}

function bullets(lines: readonly string[]): string[] {
  return lines.map((line) => `- ${line}`)
}
