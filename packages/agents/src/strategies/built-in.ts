import { linkAbort } from '@skein/base'
import type { Message } from '@skein/ai'
import { invalidUse } from '../contract/agent-error.ts'
import type {
  ExecutionContext,
  ExecutionResult,
  ExecutionStrategy,
} from '../contract/agent-types.ts'
import { type Batches, drain } from '../step/live-events.ts'
import { AgentStream, toUserMessage } from './agent-stream.ts'
import { BudgetUsedUp, StrategyRun } from './strategy-run.ts'

type Body = (run: StrategyRun) => Batches<ExecutionResult>

const builtIns = new WeakSet<ExecutionStrategy>()

/** True for `loop()`, `react()` and `plan()`. */
export function isBuiltIn(strategy: ExecutionStrategy): boolean {
  return builtIns.has(strategy)
}

/** Makes a strategy from one generator: `execute` runs it to the end, `stream` reads it on demand. */
export function builtIn(name: string, body: Body): ExecutionStrategy {
  const strategy: ExecutionStrategy = Object.freeze({
    name,
    execute: (context: ExecutionContext) => drain(start(context, false, body)),
    stream: (context: ExecutionContext) => open(context, body),
  })
  builtIns.add(strategy)
  return strategy
}

async function* start(
  context: ExecutionContext,
  streaming: boolean,
  body: Body,
): Batches<ExecutionResult> {
  const run = new StrategyRun(context, streaming)
  try {
    try {
      return yield* body(run)
    } catch (error) {
      if (!(error instanceof BudgetUsedUp)) throw error
      yield* run.endStep('stop_condition')
      return run.result('stop_condition')
    }
  } catch (error) {
    throw run.fail(error)
  }
}

function open(context: ExecutionContext, body: Body): AgentStream {
  const controller = new AbortController()
  const steering: Message[] = []
  let { state } = context
  const linked: ExecutionContext = {
    ...context,
    signal: controller.signal,
    takeSteering: () => [...(context.takeSteering?.() ?? []), ...steering.splice(0)],
    checkpoint: (next) => {
      state = next
      return context.checkpoint?.(next)
    },
  }
  async function* batches(): Batches<ExecutionResult> {
    const unlink = linkAbort([context.signal], controller)
    try {
      return yield* start(linked, true, body)
    } finally {
      unlink()
    }
  }
  return new AgentStream({
    batches: batches(),
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
