import { linkAbort } from '@skein/base'
import type { Message } from '@skein/ai'
import { invalidUse } from '../contract/agent-error.ts'
import type {
  ExecutionContext,
  ExecutionResult,
  ExecutionStrategy,
} from '../contract/agent-types.ts'
import type { LiveEvents } from '../step/live-events.ts'
import { AgentStream, toUserMessage } from './agent-stream.ts'
import { BudgetUsedUp, StrategyRun } from './strategy-run.ts'

type Body = (run: StrategyRun) => Promise<ExecutionResult>
type Run = (context: ExecutionContext, live?: LiveEvents) => Promise<ExecutionResult>

const builtIns = new WeakMap<ExecutionStrategy, Run>()

/** Returns the function behind `loop()`, `react()` or `plan()`; undefined for an application's own strategy. */
export function builtInRun(strategy: ExecutionStrategy): Run | undefined {
  return builtIns.get(strategy)
}

/** Makes a strategy from one function, which reports its events to `live` if the run has a reader. */
export function builtIn(name: string, body: Body): ExecutionStrategy {
  const run: Run = async (context, live) => start(new StrategyRun(context, live), body)
  const strategy: ExecutionStrategy = Object.freeze({
    name,
    execute: (context: ExecutionContext) => run(context),
    stream: (context: ExecutionContext) => open(context, run),
  })
  builtIns.set(strategy, run)
  return strategy
}

async function start(run: StrategyRun, body: Body): Promise<ExecutionResult> {
  try {
    try {
      return await body(run)
    } catch (error) {
      if (!(error instanceof BudgetUsedUp)) throw error
      await run.endStep('stop_condition')
      return run.result('stop_condition')
    }
  } catch (error) {
    throw run.fail(error)
  }
}

function open(context: ExecutionContext, run: Run): AgentStream {
  const controller = new AbortController()
  const steering: Message[] = []
  let { state } = context
  const linkedContext: ExecutionContext = {
    ...context,
    signal: controller.signal,
    takeSteering: () => [...(context.takeSteering?.() ?? []), ...steering.splice(0)],
    checkpoint: (next) => {
      state = next
      return context.checkpoint?.(next)
    },
  }
  return new AgentStream({
    async run(live) {
      const unlink = linkAbort([context.signal], controller)
      try {
        return await run(linkedContext, live)
      } finally {
        unlink()
      }
    },
    controller,
    state: () => state,
    steer: (message) => steering.push(toUserMessage(message, context)),
  })
}

/** Checks a limit: a whole number from `least`, or Infinity. */
export function checkLimit(name: string, limit: number, least: number): void {
  if (limit === Infinity || (Number.isInteger(limit) && limit >= least)) return
  throw invalidUse(`${name} is a whole number from ${least} or Infinity, not ${String(limit)}.`)
}
