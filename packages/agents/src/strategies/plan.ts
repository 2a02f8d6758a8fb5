import type { JsonSchema } from '@skein/base'
import { ErrorCode, isUPPError, isUserMessage, UPPError } from '@skein/ai'
import { unusableResponse, isCancelled } from '../contract/agent-error.ts'
import type { ExecutionStrategy } from '../contract/agent-types.ts'
import type { AgentStopReason } from '../contract/event.ts'
import type { PlanStep, PlanStepStatus } from '../state/state-types.ts'
import { isInferenceError } from '../step/step.ts'
import { builtIn, checkLimit } from './built-in.ts'
import { type Planner, plannerOf } from './planner.ts'
import {
  cutPlan,
  defaultPlanSchema,
  joinPlans,
  type Proposal,
  readProposal,
  unknownTools,
} from './proposal.ts'
import { planPrompt, repairPrompt, replanPrompt } from './plan-prompts.ts'
import { StepCalls } from './step-calls.ts'
import type { StrategyRun } from './strategy-run.ts'

/** Options of `plan`. */
export interface PlanOptions {
  /** The largest number of steps of a plan; longer plans are cut. Default: no limit. */
  readonly maxPlanSteps?: number
  /** Whether a failed step leads to a new plan. Default true. */
  readonly allowReplan?: boolean
  /**
   * How many new plans failed steps may lead to in one run; the next failure fails the run. Steps that fail
   * together lead to one new plan. Default: no limit.
   */
  readonly maxReplans?: number
  /**
   * How many steps that do not depend on each other are given to the model together, so that their calls can
   * run at the same time. Default 1: one step after the other.
   */
  readonly maxParallelSteps?: number
  readonly planSchema?: JsonSchema
}

type Settings = Required<PlanOptions> & { readonly planner: Planner }

/**
 * Makes a plan first, then works on its steps in the order of their dependencies (UAP §5.4). Planning is one
 * step of the run. Each step of the plan (or each group of parallel steps), with all its tool calls, is one
 * further step of the run. Failed steps stay in `state.plan` with their status.
 */
export function plan(options: PlanOptions = {}): ExecutionStrategy {
  const { maxPlanSteps = Infinity, allowReplan = true, planSchema = defaultPlanSchema } = options
  const { maxReplans = Infinity, maxParallelSteps = 1 } = options
  checkLimit('maxPlanSteps', maxPlanSteps, 1)
  checkLimit('maxReplans', maxReplans, 0)
  checkLimit('maxParallelSteps', maxParallelSteps, 1)
  return builtIn('plan', async (run) => {
    const { llm, tools, resume } = run.context
    const planner = plannerOf(llm, planSchema)
    const limits = { maxPlanSteps, maxReplans, maxParallelSteps }
    const settings = { ...limits, allowReplan, planSchema, planner }
    let end: AgentStopReason | undefined
    if (!resume || !run.state.plan)
      end = await makePlan(run, settings, planPrompt(tools, maxPlanSteps))
    // A resumed state may end with an empty plan, which answers a prompt of this strategy, not the question.
    const { metadata } = run.state.messages.findLast(isUserMessage) ?? {}
    let isAnswered =
      resume !== undefined && run.isAnswered && metadata?.['uap']?.['phase'] !== 'plan'
    for (;;) {
      if (end) return run.result(end)
      const steps = run.state.plan ?? []
      const next = nextSteps(steps, maxParallelSteps)
      // A resumed state may have steps that can never start, e.g. if the process died before the new plan.
      const [blocked] = withStatus(steps, 'pending')
      if (next.length > 0) end = await carryOut(run, next, settings)
      else if (blocked) {
        const why = `Step "${blocked.id}" of the plan waits for a step that is not completed.`
        end = await replan(run, { step: blocked, failure: unusableResponse(why) }, settings)
      } else if (isAnswered) return run.result('complete')
      // No step is left, but there is no answer yet: the plan was empty, or a steering message arrived.
      else end = await answer(run)
      isAnswered = false
    }
  })
}

/** Returns the steps to carry out now: those in progress, otherwise at most `limit` that are ready. */
function nextSteps(steps: readonly PlanStep[], limit: number): readonly PlanStep[] {
  const activeSteps = withStatus(steps, 'in_progress')
  if (activeSteps.length > 0) return activeSteps
  const completedIds = new Set(withStatus(steps, 'completed').map(({ id }) => id))
  const ready = withStatus(steps, 'pending').filter(({ dependsOn }) =>
    dependsOn.every((id) => completedIds.has(id)),
  )
  return ready.slice(0, limit)
}

function withStatus(steps: readonly PlanStep[], wanted: PlanStepStatus): readonly PlanStep[] {
  return steps.filter(({ status }) => status === wanted)
}

/** Runs one step that stores a plan in the state. */
async function makePlan(
  run: StrategyRun,
  settings: Settings,
  prompt: string,
  ended: readonly PlanStep[] = [],
): Promise<AgentStopReason | undefined> {
  const completedSteps = withStatus(ended, 'completed')
  await run.beginStep('plan')
  run.prompt(prompt, 'plan')
  let proposal = await propose(run, settings, completedSteps)
  if (proposal.problems.length > 0 && settings.allowReplan) {
    run.prompt(repairPrompt(proposal.problems), 'plan')
    proposal = await propose(run, settings, completedSteps)
  }
  if (proposal.problems.length > 0)
    throw unusableResponse(`The model's plan cannot be carried out: ${proposal.problems.join(' ')}`)
  const steps = cutPlan(proposal.steps, completedSteps, settings.maxPlanSteps)
  const names = new Set(run.context.tools.map(({ name }) => name))
  run.record.addExecutions([], unknownTools(steps, names))
  run.state = run.state.withPlan(joinPlans(ended, steps))
  await run.emit('plan_created', { plan: run.state.plan ?? [] })
  return await run.endStep()
}

async function propose(
  run: StrategyRun,
  { planner }: Settings,
  completed: readonly PlanStep[],
): Promise<Proposal> {
  try {
    const { turn } = await run.ask({ llm: planner.llm, runsTools: false })
    run.closeCalls('The plan was received.', false)
    return readProposal(turn && planner.read(turn), completed)
  } catch (error) {
    // An answer that is not JSON is treated like any other invalid plan. It stays in the history.
    const isAnswer = isUPPError(error) && error.code === ErrorCode.InvalidResponse && error.turn
    if (!isAnswer || !isInferenceError(error)) throw error
    run.keepPartial(error)
    return { steps: [], problems: [error.message] }
  }
}

/** Runs steps of the plan, and makes a new plan if one fails. */
async function carryOut(
  run: StrategyRun,
  steps: readonly PlanStep[],
  settings: Settings,
): Promise<AgentStopReason | undefined> {
  const isNew = steps.every(({ status }) => status === 'pending')
  if (isNew) for (const step of steps) setStatus(run, step, 'in_progress')
  await run.beginStep('execute')
  if (isNew) {
    for (const step of steps) await run.emit('plan_step_start', { planStep: current(run, step) })
    run.prompt(carryOutPrompt(steps), 'execute')
  }
  const { end, failure, failed = [] } = await work(run, steps)
  if (end && end !== 'complete') return await run.endStep(end)
  for (const step of steps) {
    setStatus(run, step, failed.includes(step) ? 'failed' : 'completed')
    await run.emit('plan_step_end', { planStep: current(run, step) })
  }
  const isLast = !failure && !run.state.plan?.some(({ status }) => status === 'pending')
  const stop = await run.endStep(isLast ? 'complete' : undefined)
  if (stop || !failure) return stop
  return await replan(run, { step: failed[0] ?? steps[0]!, failure }, settings)
}

function carryOutPrompt(steps: readonly PlanStep[]): string {
  const texts = steps.map(({ id, description, tool }) => {
    const use = tool === undefined ? '' : ` Use the tool "${tool}".`
    return `step "${id}" of the plan: ${description}${use}`
  })
  if (texts.length === 1) return `Carry out ${texts[0]}`
  const lines = texts.map((text) => `- ${text}`)
  return ['Carry out these steps. They do not depend on each other.', ...lines].join('\n')
}

interface Work {
  /** Why the work ended: `complete` ends the step of the plan, any other reason ends the run. */
  readonly end?: AgentStopReason
  readonly failure?: UPPError
  /** The steps that failed. */
  readonly failed?: readonly PlanStep[]
}

/**
 * Runs inferences and tools until the model requests none. A step fails if an inference fails, or if the last of
 * its own calls of the tool that the plan names for it fails.
 */
async function work(run: StrategyRun, steps: readonly PlanStep[]): Promise<Work> {
  const calls = new StepCalls(steps)
  try {
    for (;;) {
      const result = await run.ask({ runsTools: run.mayRunTools })
      for (const execution of result.executions) calls.add(execution)
      const end = await run.endAfter(result)
      if (!end) continue
      const failures = steps.filter((step) => calls.lastOf(step)?.isError)
      const [first] = failures
      if (end !== 'complete' || !first) return { end }
      const { toolName, result: output } = calls.lastOf(first)!
      const report = `its tool "${toolName}" said: ${String(output)}`
      const failure = unusableResponse(`Step "${first.id}" of the plan failed: ${report}`)
      return { failure, failed: failures }
    }
  } catch (error) {
    if (!isUPPError(error) || isCancelled(error) || !isInferenceError(error)) throw error
    run.keepPartial(error)
    return { failure: error, failed: steps }
  }
}

/** Makes a new plan for what is left to do; throws the failure if no new plan is allowed. */
async function replan(
  run: StrategyRun,
  { step: failed, failure }: { readonly step: PlanStep; readonly failure: UPPError },
  settings: Settings,
): Promise<AgentStopReason | undefined> {
  const endedSteps = (run.state.plan ?? []).filter(
    ({ status }) => status === 'completed' || status === 'failed',
  )
  if (!settings.allowReplan || run.replans >= settings.maxReplans) throw failure
  run.countReplan()
  const completedSteps = withStatus(endedSteps, 'completed')
  const { tools, input } = run.context
  const { maxPlanSteps } = settings
  const reason = failure.message
  const prompt = replanPrompt({
    goal: input.text,
    completed: completedSteps,
    failed,
    reason,
    tools,
    maxPlanSteps,
  })
  try {
    return await makePlan(run, settings, prompt, endedSteps)
  } catch (error) {
    if (!isUPPError(error) || isCancelled(error)) throw error
    run.keepPartial(error)
    // The run fails with the code and all fields of the failed step; the error of planning again is the cause.
    const message = `${failure.message} Planning again failed too: ${error.message}`
    throw new UPPError(message, { ...failure, cause: error })
  }
}

/** Runs a last step that is not part of the plan, in which the model answers. */
async function answer(run: StrategyRun): Promise<AgentStopReason | undefined> {
  await run.beginStep('execute')
  // If the plan were the last message, vendors would continue it as the start of the answer.
  if (run.isAnswered) run.prompt('No steps are needed. Answer directly.', 'execute')
  for (;;) {
    const end = await run.endAfter(await run.ask({ runsTools: run.mayRunTools }))
    if (end) return await run.endStep(end)
  }
}

function setStatus(run: StrategyRun, step: PlanStep, status: PlanStepStatus): void {
  const steps = run.state.plan ?? []
  run.state = run.state.withPlan(
    steps.map((one) => (one.id === step.id ? { ...one, status } : one)),
  )
}

/** Returns the step with its current status in the state's plan. */
function current(run: StrategyRun, step: PlanStep): PlanStep {
  return run.state.plan?.find(({ id }) => id === step.id) ?? step
}
