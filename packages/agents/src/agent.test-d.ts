import type {
  LLMInstance,
  LLMOptions,
  Message,
  Params,
  StreamEvent,
  Tool,
  ToolCall,
  ToolExecution,
  Turn,
  Unchecked,
} from '@skein/ai'
import { tool } from '@skein/ai'
import { anthropic } from '@skein/ai/anthropic'
import { openai } from '@skein/ai/openai'
import { says, scripted } from '@skein/ai/testing'
import { describe, expectTypeOf, test } from 'vitest'
import { z } from 'zod'
import { agent } from './agent.ts'
import type {
  Agent,
  AgentOptions,
  AgentStrategy,
  ExecutionContext,
  ExecutionResult,
  ExecutionStrategy,
  GenerateResult,
  Middleware,
} from './contract/agent-types.ts'
import type { AgentContext, AgentStreamEvent, UAPEvent } from './contract/event.ts'
import { AgentState } from './state/state.ts'
import { react } from './strategies/react.ts'
import { subagent } from './subagent.ts'

const model = scripted([says('hi')])

test('UAP-001 UAP-004 turns and events are those of @skein/ai, not copies', () => {
  expectTypeOf<GenerateResult['turn']>().toEqualTypeOf<Turn>()
  expectTypeOf<NonNullable<AgentStreamEvent['upp']>>().toEqualTypeOf<StreamEvent>()
  expectTypeOf<AgentState['messages']>().toEqualTypeOf<readonly Message[]>()
  expectTypeOf<Agent['tools']>().toEqualTypeOf<readonly Tool[]>()
  expectTypeOf<Parameters<NonNullable<AgentStrategy['onAct']>>[1]>().toEqualTypeOf<
    readonly ToolCall[]
  >()
  expectTypeOf<Parameters<NonNullable<AgentStrategy['onObserve']>>[1]>().toEqualTypeOf<
    readonly ToolExecution[]
  >()
})

describe('options', () => {
  test('UAP-035 all options of llm() are options of agent() but `middleware`', () => {
    expectTypeOf<AgentOptions>().toExtend<Omit<LLMOptions, 'middleware'>>()
    expectTypeOf<Omit<LLMOptions, 'middleware'>>().toExtend<AgentOptions>()
  })

  test('UAP-036 the model is required, the others are not', () => {
    expectTypeOf<{ model: typeof model }>().toExtend<AgentOptions>()
    expectTypeOf<object>().not.toExtend<AgentOptions>()
    expectTypeOf(agent({ model })).toExtend<Agent>()
    expectTypeOf(agent({}).model).toEqualTypeOf<AgentOptions['model'] | undefined>()
  })

  test('UAP-016 an agent is a set of options', () => {
    const first = agent({ model })
    expectTypeOf(agent({ ...first })).toExtend<Agent>()
  })

  test('UAP-024 UAP-023 an agent is no tool, and a sub-agent needs its schema', () => {
    const child = agent({ model })
    // @ts-expect-error -- an agent has no name, description, parameters or run
    agent({ model, tools: [child] })
    // @ts-expect-error -- parameters are missing
    const untyped: Parameters<typeof subagent>[0] = {
      name: 'n',
      description: 'd',
      agent: child,
      prompt: () => 'p',
    }
    void untyped
    subagent({
      name: 'n',
      description: 'd',
      parameters: z.object({ city: z.string() }),
      agent: child,
      prompt: (args) => {
        expectTypeOf(args).toEqualTypeOf<{ city: string }>()
        return args.city
      },
    })
  })

  test('params have the names that the vendor of the model documents', () => {
    expectTypeOf(
      agent({ model: openai('gpt-5'), params: { reasoning: { effort: 'low' } } }),
    ).toEqualTypeOf<Agent>()
    // @ts-expect-error -- the name is reasoning
    agent({ model: openai('gpt-5'), params: { reasonning: { effort: 'low' } } })
    const params: Params = { brand_new: true }
    agent({ model: openai('gpt-5'), params })
    agent({ model, params: { anything: 1 } })
    agent({ params: { anything: 1 } })
    agent({ ...agent({ model, params: { anything: 1 } }), model: openai('gpt-5') })
  })

  test('a model of another vendor may be chosen at run time', () => {
    const chosen = Math.random() > 0.5 ? openai('gpt-5') : anthropic('m')
    expectTypeOf(agent({ model: chosen, params: { speed: 'fast' } })).toEqualTypeOf<Agent>()
  })

  test('the structure decides the type of the data', async () => {
    const structure = z.object({ n: z.number() })
    const typed = agent({ model, structure, validate: true })
    const { turn } = await typed.generate('x', AgentState.initial())
    expectTypeOf(turn.data).toEqualTypeOf<{ n: number }>()
    const { data } = await agent({ model, structure }).query('x')
    expectTypeOf(data).toEqualTypeOf<Unchecked<{ n: number }>>()
  })
})

test('UAP-051 UAP-052 UAP-053 what a strategy is, gets and gives', () => {
  expectTypeOf<keyof ExecutionStrategy>().toEqualTypeOf<'name' | 'execute' | 'stream'>()
  expectTypeOf<ExecutionResult>().toEqualTypeOf<GenerateResult>()
  expectTypeOf<
    Pick<ExecutionContext, 'agent' | 'llm' | 'input' | 'state' | 'tools' | 'strategy'>
  >().toEqualTypeOf<{
    readonly agent: Agent
    readonly llm: LLMInstance
    readonly input: Message
    readonly state: AgentState
    readonly tools: readonly Tool[]
    readonly strategy: AgentStrategy
  }>()
})

test('UAP-128 a middleware needs nothing but its name', () => {
  expectTypeOf<{ name: string }>().toExtend<Middleware>()
  expectTypeOf<object>().not.toExtend<Middleware>()
})

test('UAP-146 the type of an event tells its data', () => {
  const read = (event: UAPEvent): unknown => {
    if (event.type === 'reasoning') expectTypeOf(event.data.reasoning).toEqualTypeOf<string>()
    if (event.type === 'action')
      expectTypeOf(event.data.toolCalls).toEqualTypeOf<readonly ToolCall[]>()
    return event
  }
  void read
})

test('tool() sees the context of the agent, typed and without a cast, next to its own arguments', () => {
  const pay = tool({
    name: 'pay',
    description: 'Pays.',
    parameters: z.object({ amount: z.number() }),
    approval: ({ amount }, { sessionId }: AgentContext) => amount < 10 || sessionId !== undefined,
    run: ({ amount }, { idempotencyKey, step, answer }: AgentContext) => {
      expectTypeOf(amount).toEqualTypeOf<number>()
      expectTypeOf(idempotencyKey).toEqualTypeOf<string>()
      expectTypeOf(answer).toEqualTypeOf<AgentContext['answer']>()
      return step
    },
  })
  expectTypeOf(agent({ model, tools: [pay] })).toExtend<Agent>()
})

describe('results by tool name', () => {
  const weather = tool({
    name: 'weather',
    description: 'The weather of a city.',
    parameters: z.object({ city: z.string() }),
    run: ({ city }) => ({ city, at: new Date(0) }),
  })
  const count = tool({
    name: 'count',
    description: 'Counts.',
    parameters: z.object({}),
    run: () => 1,
  })
  const worker = agent({ model, tools: [weather, count] })
  type Turned = Awaited<ReturnType<typeof worker.generate>>['turn']

  function check(one: Turned['toolExecutions'][number]): void {
    if (one.isError) expectTypeOf(one.result).toEqualTypeOf<string>()
    else if (one.toolName === 'weather') {
      expectTypeOf(one.result.at).toEqualTypeOf<string>()
      expectTypeOf(one.arguments.city).toEqualTypeOf<string>()
    } else expectTypeOf(one.result).toEqualTypeOf<number>()
  }

  test('turns of generate, ask, query and stream have them', async () => {
    const state = AgentState.initial()
    const stream = worker.stream('x', state)
    const turns = [
      (await worker.generate('x', state)).turn,
      (await worker.ask('x', state)).turn,
      (await stream.result).turn,
      await worker.query('x'),
    ]
    expectTypeOf(turns).toEqualTypeOf<Turned[]>()
    for (const turn of turns) turn.toolExecutions.forEach(check)
  })

  test('events of a stream have them, of the model and of the agent', async () => {
    for await (const event of worker.stream('x', AgentState.initial())) {
      if (event.uap?.type === 'observation') event.uap.data.observations.forEach(check)
      if (event.upp?.type !== 'tool_execution_end' || event.upp.delta.isError) continue
      if (event.upp.delta.toolName === 'weather')
        expectTypeOf(event.upp.delta.result.at).toEqualTypeOf<string>()
      else expectTypeOf(event.upp.delta.result).toEqualTypeOf<number>()
    }
  })

  test('variants keep them, and have those of their own tools', async () => {
    const variant = await agent({ ...worker, execution: react() }).query('x')
    expectTypeOf(variant).toEqualTypeOf<Turned>()
    const other = await agent({ ...worker, tools: [count] }).query('x')
    expectTypeOf(other.toolExecutions[0]!.result).toEqualTypeOf<number | string>()
    const modelless = agent({ tools: [count] })
    expectTypeOf((await modelless.query('x')).toolExecutions).toEqualTypeOf(other.toolExecutions)
  })

  test('resumed turns do not: an answer may be the result', async () => {
    const { turn } = await worker.resume(AgentState.initial())
    expectTypeOf(turn).toEqualTypeOf<Turn>()
  })

  test('a typed agent is an agent', () => {
    expectTypeOf(worker).toExtend<Agent>()
    expectTypeOf(worker.stream('x', AgentState.initial())).toExtend<ReturnType<Agent['stream']>>()
  })
})
