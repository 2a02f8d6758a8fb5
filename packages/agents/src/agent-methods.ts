import type { Message, Turn } from '@skein/ai'
import type { AgentCore } from './agent-core.ts'
import { AgentStream, drain } from './agent-stream.ts'
import type { Agent, AgentInput, AgentRun, GenerateResult, RunOptions } from './agent.ts'
import { waitsInside } from './check-run.ts'
import { flushCheckpoints } from './checkpoint/checkpointer.ts'
import type { AgentStreamEvent } from './event.ts'
import type { Answers } from './interrupt.ts'
import { runAgent, type AgentTask, type InternalRunOptions } from './run-agent.ts'
import { AgentState } from './state.ts'
import { toUserMessage } from './strategies/built-in.ts'

type Methods = Pick<
  Agent,
  'generate' | 'stream' | 'ask' | 'query' | 'resume' | 'resumeStream' | 'flush'
>
type Call = Pick<AgentTask, 'state' | 'options'> & Partial<Pick<AgentTask, 'input' | 'resume'>>

/** The calls of an agent. Closures, not methods: they work when taken off the agent. */
export function agentMethods(core: AgentCore): Methods {
  return {
    generate: (input: AgentInput, state: AgentState, options: RunOptions = {}) =>
      generate(core, { input, state, options }),
    stream: (input: AgentInput, state: AgentState, options: RunOptions = {}) =>
      stream(core, { input, state, options }),
    ask: async (input: AgentInput, state: AgentState, options: RunOptions = {}) => {
      const message = toUserMessage(input, core.options)
      return withExchange(await generate(core, { input: message, state, options }), message)
    },
    query: (input: AgentInput, options: RunOptions = {}) => query(core, input, options),
    resume: (state: AgentState, answers: Answers = {}, options: RunOptions = {}) =>
      generate(core, { state, options, resume: { answers } }),
    resumeStream: (state: AgentState, answers: Answers = {}, options: RunOptions = {}) =>
      stream(core, { state, options, resume: { answers } }),
    flush: async () => {
      const { checkpoints } = core.options
      if (checkpoints) await flushCheckpoints(checkpoints)
    },
  }
}

async function generate(core: AgentCore, call: Call): Promise<GenerateResult> {
  const controller = new AbortController()
  return drain(runAgent({ core, ...call, controller, streaming: false }))
}

function stream(core: AgentCore, call: Call): AgentRun {
  const controller = new AbortController()
  const steering: Message[] = []
  let { state } = call
  let isFinal = false
  const task: AgentTask = {
    core,
    ...call,
    controller,
    streaming: true,
    takeSteering: () => steering.splice(0),
    onState: (next) => (state = next),
  }
  const batches = watch(runAgent(task), () => (isFinal = true))
  return new AgentStream({
    batches,
    controller,
    isFinal: () => isFinal,
    state: () => state,
    steer: (message) => steering.push(toUserMessage(message, core.options)),
  })
}

/** Sees the last step end before its reader does: who leaves then has missed nothing. */
async function* watch(
  batches: AsyncGenerator<readonly AgentStreamEvent[], GenerateResult>,
  onFinal: () => void,
): AsyncGenerator<readonly AgentStreamEvent[], GenerateResult> {
  for (;;) {
    const step = await batches.next()
    if (step.done) return step.value
    if (step.value.some(isLast)) onFinal()
    yield step.value
  }
}

function isLast({ uap }: AgentStreamEvent): boolean {
  return uap?.type === 'step_end' && uap.data?.stopReason !== undefined
}

/** A64: a session of its own, so that it never overwrites a conversation. */
async function query(core: AgentCore, input: AgentInput, given: RunOptions): Promise<Turn> {
  const { checkpoints, ids } = core.options
  const state = AgentState.initial(ids && { ids })
  const options: InternalRunOptions = checkpoints ? { ...given, sessionId: core.ids() } : given
  const { turn, interrupts } = await generate(core, { input, state, options })
  if (interrupts) throw waitsInside(interrupts) // there is no state to resume from
  return turn
}

/** A4: adds what a strategy forgot, by message id, and nothing twice. */
function withExchange(result: GenerateResult, input: Message): GenerateResult {
  const { turn, state } = result
  const known = new Set(state.messages.map(({ id }) => id))
  const exchange = turn.messages.some(({ id }) => id === input.id)
    ? turn.messages
    : [input, ...turn.messages]
  const missing = exchange.filter(({ id }) => !known.has(id))
  if (missing.length === 0) return result
  if (missing.length === exchange.length) return { ...result, state: state.withMessages(exchange) }
  return { ...result, state: state.withContext(inPlace(state.messages, exchange, known)) }
}

/** The history with the exchange in its own order, from where it begins. */
function inPlace(
  history: readonly Message[],
  exchange: readonly Message[],
  known: ReadonlySet<string>,
): readonly Message[] {
  const first = exchange.find(({ id }) => known.has(id))
  const start = history.findIndex(({ id }) => id === first?.id)
  const ids = new Set(exchange.map(({ id }) => id))
  const others = history.slice(start).filter(({ id }) => !ids.has(id))
  return [...history.slice(0, start), ...exchange, ...others]
}
