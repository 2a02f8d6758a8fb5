import type { JsonSchema } from '@skein/base'
import { ErrorCode, isUPPError, UPPError, type ToolExecution } from '@skein/ai'
import { invalidResponse, isCancelled, messageOf } from '../agent-error.ts'
import type { AgentStopReason } from '../agent.ts'
import type { ExecutionResult, ExecutionStrategy } from '../execution.ts'
import type { PlanStep, PlanStepStatus } from '../plan-step.ts'
import type { Batches, Run } from '../run.ts'
import { isInferenceError } from '../step.ts'
import { builtIn, checkLimit } from './built-in.ts'
import { planPrompt, repairPrompt, replanPrompt, stepPrompt } from './plan-prompts.ts'
import {
  cutPlan,
  defaultPlanSchema,
  inOrder,
  joinPlans,
  readProposal,
  unknownTools,
  type Proposal,
} from './plan-proposal.ts'
import { plannerOf, type Planner } from './planner.ts'

export interface PlanOptions {
  /** Longest plan; longer ones are cut. */
  readonly maxPlanSteps?: number
  /** Whether a failed step leads to a new plan. Default true. */
  readonly allowReplan?: boolean
  readonly planSchema?: JsonSchema
}

type Settings = Required<PlanOptions> & { readonly planner: Planner }

/**
 * Plans first, then carries out the steps one by one in the order of their dependencies (UAP §5.4).
 * Planning is a step of the run, and so is each step of the plan with all the tools it takes.
 */
export function plan(options: PlanOptions = {}): ExecutionStrategy {
  const { maxPlanSteps = Infinity, allowReplan = true, planSchema = defaultPlanSchema } = options
  checkLimit('maxPlanSteps', maxPlanSteps, 1)
  return builtIn('plan', (run) => {
    const planner = plannerOf(run.context.llm, planSchema)
    return runPlan(run, { maxPlanSteps, allowReplan, planSchema, planner })
  })
}

async function* runPlan(run: Run, settings: Settings): Batches<ExecutionResult> {
  const { tools, resume } = run.context
  let end: AgentStopReason | undefined
  if (!resume || !run.state.plan)
    end = yield* makePlan(run, settings, planPrompt(tools, settings.maxPlanSteps))
  let isAnswered = resume !== undefined && run.isAnswered
  for (;;) {
    if (end) return run.result(end)
    const next = nextStep(run.state.plan ?? [])
    if (next) end = yield* carryOut(run, next, settings)
    else if (isAnswered) return run.result('complete')
    // No step is left, but something is to be said: the plan was empty, or somebody steered.
    else end = yield* answer(run)
    isAnswered = false
  }
}

function nextStep(steps: readonly PlanStep[]): PlanStep | undefined {
  const completed = steps.filter(({ status }) => status === 'completed')
  const open = steps.filter(({ status }) => status === 'pending' || status === 'in_progress')
  return open.find(({ status }) => status === 'in_progress') ?? inOrder(open, completed)[0]
}

/** One step that ends with a plan in the state. */
async function* makePlan(
  run: Run,
  settings: Settings,
  prompt: string,
  completed: readonly PlanStep[] = [],
): Batches<AgentStopReason | undefined> {
  yield* run.beginStep('plan')
  run.prompt(prompt, 'plan')
  let proposal = yield* propose(run, settings, completed)
  if (proposal.problems.length > 0 && settings.allowReplan) {
    run.prompt(repairPrompt(proposal.problems), 'plan')
    proposal = yield* propose(run, settings, completed)
  }
  if (proposal.problems.length > 0)
    throw invalidResponse(`The model's plan cannot be carried out: ${proposal.problems.join(' ')}`)
  const steps = cutPlan(proposal.steps, completed, settings.maxPlanSteps)
  const names = new Set(run.context.tools.map(({ name }) => name))
  run.record.addExecutions([], unknownTools(steps, names))
  run.state = run.state.withPlan(joinPlans(completed, steps))
  yield* run.tell('plan_created', { plan: run.state.plan ?? [] })
  return yield* run.endStep()
}

async function* propose(
  run: Run,
  { planner }: Settings,
  completed: readonly PlanStep[],
): Batches<Proposal> {
  try {
    const { turn } = yield* run.ask({ llm: planner.llm, runsTools: false })
    run.closeCalls('The plan was received.', false)
    return readProposal(turn && planner.read(turn), completed)
  } catch (error) {
    // An answer that is not JSON is a bad plan like any other; what it was stays in the history.
    const isAnswer = isUPPError(error) && error.code === ErrorCode.InvalidResponse && error.turn
    if (!isAnswer || !isInferenceError(error)) throw error
    run.keepPartial(error)
    return { steps: [], problems: [error.message] }
  }
}

/** One step of the plan, and a new plan if it fails. */
async function* carryOut(
  run: Run,
  step: PlanStep,
  settings: Settings,
): Batches<AgentStopReason | undefined> {
  const isNew = step.status === 'pending'
  if (isNew) setStatus(run, step, 'in_progress')
  yield* run.beginStep('execute')
  if (isNew) {
    yield* run.tell('plan_step_start', { planStep: statusOf(run, step) })
    run.prompt(stepPrompt(step), 'execute')
  }
  const { end, failure } = yield* work(run, step)
  if (end && end !== 'complete') return yield* run.endStep(end)
  setStatus(run, step, failure ? 'failed' : 'completed')
  yield* run.tell('plan_step_end', { planStep: statusOf(run, step) })
  const isLast = !failure && nextStep(run.state.plan ?? []) === undefined
  const stop = yield* run.endStep(isLast ? 'complete' : undefined)
  if (stop || !failure) return stop
  if (!settings.allowReplan) throw failure
  return yield* replan(run, step, failure, settings)
}

interface Work {
  /** Why the step, or with another word than `complete` the run, is over. */
  readonly end?: AgentStopReason
  readonly failure?: UPPError
}

/** Inferences and tools until the model asks for none. A step fails with its inference or its tool. */
async function* work(run: Run, step: PlanStep): Batches<Work> {
  let last: ToolExecution | undefined
  try {
    for (;;) {
      const result = yield* run.ask({ runsTools: run.mayRunTools })
      last = result.executions.findLast(({ toolName }) => toolName === step.tool) ?? last
      const end = await run.endAfter(result)
      if (!end) continue
      return end === 'complete' && last?.isError ? { failure: toolFailure(step, last) } : { end }
    }
  } catch (error) {
    if (!isUPPError(error) || isCancelled(error) || !isInferenceError(error)) throw error
    return { failure: error }
  }
}

function toolFailure({ id }: PlanStep, { toolName, result }: ToolExecution): UPPError {
  return invalidResponse(
    `Step "${id}" of the plan failed: its tool "${toolName}" said: ${String(result)}`,
  )
}

async function* replan(
  run: Run,
  failed: PlanStep,
  failure: UPPError,
  settings: Settings,
): Batches<AgentStopReason | undefined> {
  const completed = (run.state.plan ?? []).filter(({ status }) => status === 'completed')
  const { tools, input } = run.context
  const goal = input.text
  const { maxPlanSteps } = settings
  const reason = failure.message
  const prompt = replanPrompt({ goal, completed, failed, reason, tools, maxPlanSteps })
  try {
    return yield* makePlan(run, settings, prompt, completed)
  } catch (error) {
    if (isCancelled(error)) throw error
    throw withCause(failure, error)
  }
}

/** A12: the step's error, because of which there was a plan to make, and why there is none. */
function withCause(failure: UPPError, cause: unknown): UPPError {
  const { code, provider, modality, statusCode, hint } = failure
  const message = `${failure.message} Planning again failed too: ${messageOf(cause)}`
  return new UPPError(message, { code, provider, modality, statusCode, hint, cause })
}

/** A last step for what is no step of the plan. */
async function* answer(run: Run): Batches<AgentStopReason | undefined> {
  yield* run.beginStep('execute')
  // The plan itself must not be the last word, or vendors take it for the start of the answer.
  if (run.isAnswered) run.prompt('No steps are needed. Answer directly.', 'execute')
  for (;;) {
    const end = await run.endAfter(yield* run.ask({ runsTools: run.mayRunTools }))
    if (end) return yield* run.endStep(end)
  }
}

function setStatus(run: Run, step: PlanStep, status: PlanStepStatus): void {
  const steps = run.state.plan ?? []
  run.state = run.state.withPlan(
    steps.map((one) => (one.id === step.id ? { ...one, status } : one)),
  )
}

function statusOf(run: Run, step: PlanStep): PlanStep {
  return run.state.plan?.find(({ id }) => id === step.id) ?? step
}
