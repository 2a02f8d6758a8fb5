import { type JsonSchema, messageOf } from '@skein/base'
import { ErrorCode, isUPPError, type ToolExecution, UPPError } from '@skein/ai'
import { unusableResponse, isCancelled } from '../contract/agent-error.ts'
import type { ExecutionStrategy } from '../contract/agent-types.ts'
import type { AgentStopReason } from '../contract/event.ts'
import type { PlanStep, PlanStepStatus } from '../state/state-types.ts'
import type { Batches } from '../step/live-events.ts'
import { isInferenceError } from '../step/step.ts'
import { builtIn, checkLimit } from './built-in.ts'
import {
  cutPlan,
  defaultPlanSchema,
  dependencyOrder,
  joinPlans,
  type Planner,
  plannerOf,
  planPrompt,
  type Proposal,
  readProposal,
  repairPrompt,
  replanPrompt,
  unknownTools,
} from './planner.ts'
import type { StrategyRun } from './strategy-run.ts'

/** Options of `plan`. */
export interface PlanOptions {
  /** The largest number of steps of a plan; longer plans are cut. Default: no limit. */
  readonly maxPlanSteps?: number
  /** Whether a failed step leads to a new plan. Default true. */
  readonly allowReplan?: boolean
  readonly planSchema?: JsonSchema
}

type Settings = Required<PlanOptions> & { readonly planner: Planner }

/**
 * Makes a plan first, then works on its steps one by one in the order of their dependencies (UAP §5.4).
 * Planning is one step of the run, and each step of the plan with all its tool calls is another.
 */
export function plan(options: PlanOptions = {}): ExecutionStrategy {
  const { maxPlanSteps = Infinity, allowReplan = true, planSchema = defaultPlanSchema } = options
  checkLimit('maxPlanSteps', maxPlanSteps, 1)
  return builtIn('plan', async function* (run) {
    const { llm, tools, resume } = run.context
    const planner = plannerOf(llm, planSchema)
    const settings = { maxPlanSteps, allowReplan, planSchema, planner }
    let end: AgentStopReason | undefined
    if (!resume || !run.state.plan)
      end = yield* makePlan(run, settings, planPrompt(tools, maxPlanSteps))
    let isAnswered = resume !== undefined && run.isAnswered
    for (;;) {
      if (end) return run.result(end)
      const next = nextStep(run.state.plan ?? [])
      if (next) end = yield* carryOut(run, next, settings)
      else if (isAnswered) return run.result('complete')
      // No step is left, but there is no answer yet: the plan was empty, or a steering message arrived.
      else end = yield* answer(run)
      isAnswered = false
    }
  })
}

function nextStep(steps: readonly PlanStep[]): PlanStep | undefined {
  const completed = steps.filter(({ status }) => status === 'completed')
  const open = steps.filter(({ status }) => status === 'pending' || status === 'in_progress')
  return open.find(({ status }) => status === 'in_progress') ?? dependencyOrder(open, completed)[0]
}

/** Runs one step that stores a plan in the state. */
async function* makePlan(
  run: StrategyRun,
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
    throw unusableResponse(`The model's plan cannot be carried out: ${proposal.problems.join(' ')}`)
  const steps = cutPlan(proposal.steps, completed, settings.maxPlanSteps)
  const names = new Set(run.context.tools.map(({ name }) => name))
  run.record.addExecutions([], unknownTools(steps, names))
  run.state = run.state.withPlan(joinPlans(completed, steps))
  yield* run.emit('plan_created', { plan: run.state.plan ?? [] })
  return yield* run.endStep()
}

async function* propose(
  run: StrategyRun,
  { planner }: Settings,
  completed: readonly PlanStep[],
): Batches<Proposal> {
  try {
    const { turn } = yield* run.ask({ llm: planner.llm, runsTools: false })
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

/** Runs one step of the plan, and makes a new plan if it fails. */
async function* carryOut(
  run: StrategyRun,
  step: PlanStep,
  settings: Settings,
): Batches<AgentStopReason | undefined> {
  const isNew = step.status === 'pending'
  if (isNew) setStatus(run, step, 'in_progress')
  yield* run.beginStep('execute')
  if (isNew) {
    yield* run.emit('plan_step_start', { planStep: current(run, step) })
    const tool = step.tool === undefined ? '' : ` Use the tool "${step.tool}".`
    run.prompt(`Carry out step "${step.id}" of the plan: ${step.description}${tool}`, 'execute')
  }
  const { end, failure } = yield* work(run, step)
  if (end && end !== 'complete') return yield* run.endStep(end)
  setStatus(run, step, failure ? 'failed' : 'completed')
  yield* run.emit('plan_step_end', { planStep: current(run, step) })
  const isLast = !failure && nextStep(run.state.plan ?? []) === undefined
  const stop = yield* run.endStep(isLast ? 'complete' : undefined)
  if (stop || !failure) return stop
  if (!settings.allowReplan) throw failure
  return yield* replan(run, { step, failure }, settings)
}

interface Work {
  /** Why the work ended: `complete` ends the step of the plan, any other reason ends the run. */
  readonly end?: AgentStopReason
  readonly failure?: UPPError
}

/**
 * Runs inferences and tools until the model requests none. The step fails if an inference fails, or if the
 * last call of the tool that the plan names for it fails.
 */
async function* work(run: StrategyRun, step: PlanStep): Batches<Work> {
  let last: ToolExecution | undefined
  try {
    for (;;) {
      const result = yield* run.ask({ runsTools: run.mayRunTools })
      last = result.executions.findLast(({ toolName }) => toolName === step.tool) ?? last
      const end = await run.endAfter(result)
      if (!end) continue
      if (end !== 'complete' || !last?.isError) return { end }
      const said = `its tool "${last.toolName}" said: ${String(last.result)}`
      return { failure: unusableResponse(`Step "${step.id}" of the plan failed: ${said}`) }
    }
  } catch (error) {
    if (!isUPPError(error) || isCancelled(error) || !isInferenceError(error)) throw error
    return { failure: error }
  }
}

async function* replan(
  run: StrategyRun,
  { step: failed, failure }: { readonly step: PlanStep; readonly failure: UPPError },
  settings: Settings,
): Batches<AgentStopReason | undefined> {
  const completed = (run.state.plan ?? []).filter(({ status }) => status === 'completed')
  const { tools, input } = run.context
  const { maxPlanSteps } = settings
  const reason = failure.message
  const prompt = replanPrompt({ goal: input.text, completed, failed, reason, tools, maxPlanSteps })
  try {
    return yield* makePlan(run, settings, prompt, completed)
  } catch (error) {
    if (isCancelled(error)) throw error
    // The run fails with the code of the failed step; the error of planning again is the cause.
    const { code, provider, modality, statusCode, hint } = failure
    const message = `${failure.message} Planning again failed too: ${messageOf(error)}`
    throw new UPPError(message, { code, provider, modality, statusCode, hint, cause: error })
  }
}

/** Runs a last step that answers outside the plan. */
async function* answer(run: StrategyRun): Batches<AgentStopReason | undefined> {
  yield* run.beginStep('execute')
  // If the plan were the last message, vendors would continue it as the start of the answer.
  if (run.isAnswered) run.prompt('No steps are needed. Answer directly.', 'execute')
  for (;;) {
    const end = await run.endAfter(yield* run.ask({ runsTools: run.mayRunTools }))
    if (end) return yield* run.endStep(end)
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
