import { isPromise } from '@skein/base'
import type { ExecutionStrategy } from '../contract/agent-types.ts'
import { builtIn, checkLimit } from './built-in.ts'

/** Options of `loop`. */
export interface LoopOptions {
  /**
   * The number of steps (an inference with its tools) after which the run ends. With 0 the calls of the first
   * inference stay open. Default: no limit.
   */
  readonly maxIterations?: number
}

/**
 * Calls the model and runs its tools until it requests none (UAP
 * §5.2). One inference with its tools is one step.
 */
export function loop({ maxIterations = Infinity }: LoopOptions = {}): ExecutionStrategy {
  checkLimit('maxIterations', maxIterations, 0)
  return builtIn('loop', async (run) => {
    if (run.context.resume && run.isAnswered) return run.result('complete')
    for (;;) {
      await run.beginStep()
      const result = await run.ask({ runsTools: maxIterations > 0 && run.mayRunTools })
      const limit = run.steps >= maxIterations ? 'max_iterations' : undefined
      const end = run.endAfter(result)
      const stop = await run.endStep(isPromise(end) ? await end : end, limit)
      if (stop) return run.result(stop)
    }
  })
}
