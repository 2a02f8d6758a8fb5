import type { AgentStopReason } from '../agent.ts'
import type { ExecutionResult, ExecutionStrategy } from '../execution.ts'
import type { Batches, Run } from '../run.ts'
import type { StepResult } from '../step.ts'
import { builtIn, checkLimit } from './built-in.ts'

export interface LoopOptions {
  /** Inferences with their tools after which the run ends; 0 leaves the first calls open. */
  readonly maxIterations?: number
}

/** Asks the model and runs its tools until it asks for none (UAP §5.2). One inference is one step. */
export function loop({ maxIterations = Infinity }: LoopOptions = {}): ExecutionStrategy {
  checkLimit('maxIterations', maxIterations, 0)
  return builtIn('loop', (run) => runLoop(run, maxIterations))
}

async function* runLoop(run: Run, maxIterations: number): Batches<ExecutionResult> {
  if (run.context.resume && run.isAnswered) return run.result('complete')
  for (;;) {
    yield* run.beginStep()
    const runsTools = maxIterations > 0 && run.mayRunTools
    const result = yield* run.ask({ runsTools })
    const end = yield* run.endStep(await endOf(run, result, maxIterations))
    if (end) return run.result(end)
  }
}

async function endOf(
  run: Run,
  result: StepResult,
  maxIterations: number,
): Promise<AgentStopReason | undefined> {
  const end = await run.endAfter(result)
  return end ?? (run.steps >= maxIterations ? 'max_iterations' : undefined)
}
