import { UserMessage, type Message } from '@skein/ai'
import { invalidRequest } from '../agent-error.ts'
import { AgentStream, drain } from '../agent-stream.ts'
import type { AgentInput } from '../agent.ts'
import type { ExecutionContext, ExecutionResult, ExecutionStrategy } from '../execution.ts'
import { linkAbort } from '../link-abort.ts'
import { Run, type Batches } from '../run.ts'

const builtIns = new WeakSet<ExecutionStrategy>()

export function isBuiltIn(strategy: ExecutionStrategy): boolean {
  return builtIns.has(strategy)
}

/** A strategy from one generator: `execute` drains it, `stream` reads it. */
export function builtIn(
  name: string,
  body: (run: Run) => Batches<ExecutionResult>,
): ExecutionStrategy {
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
  body: (run: Run) => Batches<ExecutionResult>,
): Batches<ExecutionResult> {
  const run = new Run(context, streaming)
  try {
    return yield* body(run)
  } catch (error) {
    throw run.fail(error)
  }
}

function open(
  context: ExecutionContext,
  body: (run: Run) => Batches<ExecutionResult>,
): AgentStream {
  const controller = new AbortController()
  const steering: Message[] = []
  let { state } = context
  const takeSteering = (): readonly Message[] => [
    ...(context.takeSteering?.() ?? []),
    ...steering.splice(0),
  ]
  const linked: ExecutionContext = {
    ...context,
    signal: controller.signal,
    takeSteering,
    checkpoint: (next) => {
      state = next
      return context.checkpoint?.(next)
    },
  }
  return new AgentStream({
    batches: withLink(context, controller, () => start(linked, true, body)),
    controller,
    state: () => state,
    steer: (message) => steering.push(toUserMessage(message, context)),
  })
}

async function* withLink(
  { signal }: ExecutionContext,
  controller: AbortController,
  open: () => Batches<ExecutionResult>,
): Batches<ExecutionResult> {
  const unlink = linkAbort([signal], controller)
  try {
    return yield* open()
  } finally {
    unlink()
  }
}

export function toUserMessage(
  input: AgentInput,
  { ids, clock }: Pick<ExecutionContext, 'ids' | 'clock'>,
): Message {
  if (typeof input !== 'string') return input
  return new UserMessage(input, { ...(ids && { ids }), ...(clock && { clock }) })
}

/** Limits are whole numbers from `least`, or Infinity. */
export function checkLimit(name: string, limit: number, least: number): void {
  if (limit === Infinity || (Number.isInteger(limit) && limit >= least)) return
  throw invalidRequest(`${name} is a whole number from ${least} or Infinity, not ${String(limit)}.`)
}
