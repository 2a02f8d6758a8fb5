import type { AgentStopReason } from '../agent.ts'
import type { ExecutionResult, ExecutionStrategy } from '../execution.ts'
import type { Batches, Run } from '../run.ts'
import type { StepResult } from '../step.ts'
import { builtIn, checkLimit } from './built-in.ts'
import { bareModel } from './bare-model.ts'

export interface ReactOptions {
  /** Cycles of reason, act and observe after which the run ends. */
  readonly maxSteps?: number
  /** What the model is told before it reasons. */
  readonly reasoningPrompt?: string
}

const REASON = 'Think about what to do next.'
const ACT = 'Based on your reasoning, take action.'

/** Reasons without tools, then acts with them, until there is nothing to do (UAP §5.3). */
export function react(options: ReactOptions = {}): ExecutionStrategy {
  const { maxSteps = Infinity, reasoningPrompt = REASON } = options
  checkLimit('maxSteps', maxSteps, 1)
  return builtIn('react', (run) => runReact(run, { maxSteps, reasoningPrompt }))
}

async function* runReact(run: Run, options: Required<ReactOptions>): Batches<ExecutionResult> {
  if (run.context.resume && run.isAnswered) return run.result('complete')
  const reasoner = bareModel(run.context.llm)
  for (;;) {
    const isWithin = run.hasOpenCalls // a resumed step has reasoned already
    yield* run.beginStep()
    if (!isWithin) {
      run.prompt(options.reasoningPrompt, 'reason')
      yield* reason(run, reasoner)
      run.prompt(ACT, 'act')
    }
    const result = yield* run.ask({ runsTools: run.mayRunTools })
    const end = yield* run.endStep(await endOf(run, result, options.maxSteps))
    if (end) return run.result(end)
  }
}

/** UAP §5.3.2: what the model reasons is part of the state. Tools are neither offered nor run (A7). */
async function* reason(run: Run, llm: Run['context']['llm']): Batches<void> {
  const { turn } = yield* run.ask({ llm, runsTools: false })
  run.closeCalls('No tool runs while you reason.', true)
  const reasoning = turn?.response.text ?? ''
  run.state = run.state.withReasoning(reasoning)
  await run.hook('onReason', (hooks) => hooks.onReason?.(run.step, reasoning))
  yield* run.tell('reasoning', { reasoning })
}

async function endOf(
  run: Run,
  result: StepResult,
  maxSteps: number,
): Promise<AgentStopReason | undefined> {
  const end = await run.endAfter(result)
  return end ?? (run.steps >= maxSteps ? 'max_steps' : undefined)
}
