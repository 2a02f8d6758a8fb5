import type { ExecutionStrategy } from '../contract/agent-types.ts'
import { builtIn, checkLimit } from './built-in.ts'

/** Options of `loop`. */
export interface LoopOptions {
  /** Inferences with their tools after which the run ends; 0 leaves the first calls open. */
  readonly maxIterations?: number
}

/**
 * Asks the model and runs its tools until it asks for none (UAP §5.2). One inference with its tools is
 * one step.
 */
export function loop({ maxIterations = Infinity }: LoopOptions = {}): ExecutionStrategy {
  checkLimit('maxIterations', maxIterations, 0)
  return builtIn('loop', async function* (run) {
    if (run.context.resume && run.isAnswered) return run.result('complete')
    for (;;) {
      yield* run.beginStep()
      const result = yield* run.ask({ runsTools: maxIterations > 0 && run.mayRunTools })
      let end = await run.endAfter(result)
      if (!end && run.steps >= maxIterations) end = 'max_iterations'
      const stop = yield* run.endStep(end)
      if (stop) return run.result(stop)
    }
  })
}
