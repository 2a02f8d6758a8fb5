import { uuidV4 } from '@skein/base'
import type { Message, ModelReference, Tool, Turn, TypesOf, DataOf } from '@skein/ai'
import { invalidUse } from './contract/agent-error.ts'
import type {
  Agent,
  AgentInput,
  AgentOptions,
  AgentRun,
  GenerateResult,
  ModellessAgent,
  ModellessOptions,
  RunOptions,
} from './contract/agent-types.ts'
import { needsCost } from './contract/cost-condition.ts'
import { checkOptionNames } from './run/check-options.ts'
import { checkMiddleware } from './run/check-middleware.ts'
import { checkCost } from './run/check-cost.ts'
import { AgentCore, unansweredInterrupts, withoutLimit } from './run/agent-core.ts'
import { type AgentTask, type InternalRunOptions, runAgent } from './run/run-agent.ts'
import type { Answers } from './state/state-types.ts'
import { AgentState } from './state/state.ts'
import { AgentStream, toUserMessage } from './strategies/agent-stream.ts'

/**
 * Defines an agent (UAP §4.1).
 *
 *     const coder = agent({ model: anthropic('claude-sonnet-4-5'), tools: [bash, read] })
 *     const { turn, state } = await coder.generate('Fix the bug', AgentState.initial())
 */
export function agent<
  Data = unknown,
  Model extends ModelReference = ModelReference,
  T extends Tool = Tool,
  Validate extends boolean = false,
>(
  options: AgentOptions<Data, Model, T> & { readonly validate?: Validate },
): Agent<DataOf<Data, Validate>, TypesOf<T>, T>
/** Defines an agent without a model: for use as a sub-agent, or to be spread into another agent's options. */
export function agent<
  Data = unknown,
  Model extends ModelReference = ModelReference,
  T extends Tool = Tool,
  Validate extends boolean = false,
>(
  options: ModellessOptions<Data, Model, T> & { readonly validate?: Validate },
): ModellessAgent<DataOf<Data, Validate>, TypesOf<T>, T>
export function agent(options: ModellessOptions): Agent {
  checkOptionNames(options)
  const { tools = [], toolStrategy, ids = uuidV4 } = options
  checkTools(tools)
  checkMiddleware(options)
  const core = new AgentCore(options)
  // The options become properties of the agent, so that `{ ...agent }` passes them on. Only options
  // that were given are copied; id and methods of an agent that was spread are replaced.
  const entries = Object.entries(options).filter(([, value]) => value !== undefined)
  core.agent = Object.freeze({
    ...Object.fromEntries(entries),
    tools: Object.freeze([...tools]),
    ...(toolStrategy && { toolStrategy: withoutLimit(toolStrategy) }),
    id: ids(),
    ...agentMethods(core),
  }) as Agent // without a model this is a `ModellessAgent`, as the overload declares
  // Only with a limit of cost, because binding the model is otherwise left to its first use.
  if (options.model && needsCost(options.strategy?.stopCondition))
    checkCost(core.llm, options.llmMiddleware)
  return core.agent
}

/**
 * Throws for an item that is not a tool. Agents are rejected too: a tool that runs an agent must be declared
 * explicitly (UAP §8.2).
 */
function checkTools(tools: readonly Tool[]): void {
  if (!Array.isArray(tools))
    throw invalidUse(
      'The option tools is not a list.',
      `Write tools: [${Object.keys(tools).join(', ')}]; each tool has its name: tool({ name, description, parameters, run }).`,
    )
  tools.forEach((tool: Partial<Tool> & { generate?: unknown }, index) => {
    if (typeof tool?.name === 'string' && typeof tool.run === 'function') return
    const isAgent = typeof tool?.generate === 'function'
    throw invalidUse(
      `Item ${index} of the tools is ${isAgent ? 'an agent' : 'not a tool'}.`,
      isAgent
        ? 'Write a tool that runs it: subagent({ name, description, parameters, agent, prompt }).'
        : 'A tool has a name, a description, parameters and a function `run`.',
    )
  })
}

type Methods = Pick<
  Agent,
  'generate' | 'stream' | 'ask' | 'query' | 'resume' | 'resumeStream' | 'flush'
>
type Call = Pick<AgentTask, 'input' | 'state' | 'options' | 'resume' | 'finish'>

/** Returns the methods of an agent. They are closures, so that `const { generate } = coder` works. */
function agentMethods(core: AgentCore): Methods {
  return {
    generate: (input: AgentInput, state: AgentState, options: RunOptions = {}) =>
      generate(core, { input, state, options }),
    stream: (input: AgentInput, state: AgentState, options: RunOptions = {}) =>
      stream(core, { input, state, options }),
    ask: (input: AgentInput, state: AgentState, options: RunOptions = {}) =>
      generate(core, { input, state, options, finish: withExchange }),
    query: (input: AgentInput, options: RunOptions = {}) => query(core, input, options),
    resume: (state: AgentState, answers: Answers = {}, options: RunOptions = {}) =>
      generate(core, { state, options, resume: { answers } }),
    resumeStream: (state: AgentState, answers: Answers = {}, options: RunOptions = {}) =>
      stream(core, { state, options, resume: { answers } }),
    flush: () => core.flush(),
  }
}

async function generate(core: AgentCore, call: Call): Promise<GenerateResult> {
  const controller = new AbortController()
  return runAgent({ core, ...call, controller })
}

function stream(core: AgentCore, call: Call): AgentRun {
  const controller = new AbortController()
  const steering: Message[] = []
  let { state } = call
  const task: AgentTask = {
    core,
    ...call,
    controller,
    takeSteering: () => steering.splice(0),
    onState: (next) => (state = next),
  }
  return new AgentStream({
    run: (live) => runAgent({ ...task, live }),
    controller,
    state: () => state,
    steer: (message) => steering.push(toUserMessage(message, core.options)),
  })
}

/**
 * Runs the agent once from an empty state. With a checkpoint store the run gets a new session id, so that it
 * never overwrites a saved conversation.
 */
async function query(core: AgentCore, input: AgentInput, callOptions: RunOptions): Promise<Turn> {
  const { checkpoints, ids } = core.options
  const state = AgentState.initial({ ids })
  const options: InternalRunOptions = checkpoints
    ? { ...callOptions, sessionId: core.ids() }
    : callOptions
  const { turn, interrupts } = await generate(core, { input, state, options })
  // A query returns no state, so no one could resume the run.
  if (interrupts) throw unansweredInterrupts(interrupts)
  return turn
}

/**
 * Returns a result whose state contains each message of the exchange (the input and the messages of the turn)
 * once and in order, because an application's strategy may have left some out or added some twice. Messages are
 * compared by id. The exchange begins where the state has its first message of it, otherwise at the end.
 */
function withExchange(result: GenerateResult, input: Message): GenerateResult {
  const { turn, state } = result
  const history = state.messages
  const exchange = turn.messages.some(({ id }) => id === input.id)
    ? turn.messages
    : [input, ...turn.messages]
  const ids = new Set(exchange.map(({ id }) => id))
  const knownMessages = history.filter(({ id }) => ids.has(id))
  if (
    knownMessages.length === ids.size &&
    knownMessages.every(({ id }, at) => id === exchange[at]!.id)
  )
    return result
  const start = knownMessages[0] ? history.indexOf(knownMessages[0]) : history.length
  const others = history.slice(start).filter(({ id }) => !ids.has(id))
  const messages = [...history.slice(0, start), ...exchange, ...others]
  return { ...result, state: state.withContext(messages) }
}
