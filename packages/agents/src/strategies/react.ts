import type { ExecutionStrategy } from '../contract/agent-types.ts'
import { builtIn, checkLimit } from './built-in.ts'
import { bareModel } from './planner.ts'
import type { StrategyRun } from './strategy-run.ts'

/** Options of `react`. */
interface ReactOptions {
  /** The number of cycles of reason, act and observe after which the run ends. Default: no limit. */
  readonly maxSteps?: number
  /** The prompt that asks the model to reason. */
  readonly reasoningPrompt?: string
}

const REASON = 'Think about what to do next.'
const ACT = 'Based on your reasoning, take action.'

/** Reasons without tools, then acts with them, until the model requests no more calls (UAP §5.3). */
export function react(options: ReactOptions = {}): ExecutionStrategy {
  const { maxSteps = Infinity, reasoningPrompt = REASON } = options
  checkLimit('maxSteps', maxSteps, 1)
  return builtIn('react', async (run) => {
    if (run.context.resume && run.isAnswered) return run.result('complete')
    const reasoner = bareModel(run.context.llm)
    for (;;) {
      const hasReasoned = run.hasOpenCalls // a resumed step runs its open calls without reasoning again
      await run.beginStep()
      if (!hasReasoned) {
        run.prompt(reasoningPrompt, 'reason')
        await reason(run, reasoner)
        run.prompt(ACT, 'act')
      }
      const result = await run.ask({ runsTools: run.mayRunTools })
      const limit = run.steps >= maxSteps ? 'max_steps' : undefined
      const stop = await run.endStep(await run.endAfter(result), limit)
      if (stop) return run.result(stop)
    }
  })
}

/**
 * Runs the reasoning inference and stores its text in the state (UAP
 * §5.3.2). Tools are neither offered nor run.
 */
async function reason(run: StrategyRun, llm: StrategyRun['context']['llm']): Promise<void> {
  const { turn } = await run.ask({ llm, runsTools: false })
  run.closeCalls('No tool runs while you reason.', true)
  const reasoning = turn?.response.text ?? ''
  run.state = run.state.withReasoning(reasoning)
  await run.hook('onReason', run.step, reasoning)
  await run.emit('reasoning', { reasoning })
}
