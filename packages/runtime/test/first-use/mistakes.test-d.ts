// The same mistakes as in mistakes.test.ts, as the compiler sees them.
import { expectTypeOf, test } from 'vitest'
import { z } from 'zod'
import { agent } from '@skein/agents'
import { llm, tool } from '@skein/ai'
import { openai } from '@skein/ai/openai'
import { says, scripted } from '@skein/ai/testing'
import {
  createRuntime,
  defineAgent,
  definePrompt,
  defineTool,
  withModel,
  type AgentDefinition,
} from '@skein/runtime'

const model = scripted([says('')])
const parameters = z.object({ city: z.string() })
const base = { name: 'weather', description: 'Weather.' }
const weather = tool({ ...base, parameters, run: () => 'mild' })

test('tools', () => {
  // @ts-expect-error -- it is called parameters
  tool({ ...base, inputSchema: parameters, execute: () => 'mild' })
  // @ts-expect-error -- the arguments have no town
  tool({ ...base, parameters, run: ({ town }) => town })
  // @ts-expect-error -- there is no risk
  defineTool({ ...base, args: parameters, execute: () => 'mild' })
  // @ts-expect-error -- the first parameter is the state
  defineTool({ ...base, args: parameters, risk: 'read_only', execute: ({ city }) => city })
  // @ts-expect-error -- there is no rollback
  defineTool({ ...base, args: parameters, risk: 'write_high_risk', execute: () => 'mild' })
})

test('models and their options', () => {
  // @ts-expect-error -- a text is no model
  llm({ model: 'openai/gpt-5' })
  // @ts-expect-error -- a text is no model
  agent({ model: 'openai/gpt-5' })
  // @ts-expect-error -- an input is a text, a message or a block
  void llm({ model }).generate({ prompt: 'Hello' })
  // @ts-expect-error -- tools are a list
  llm({ model, tools: { weather } })
  // @ts-expect-error -- it is called maxOutputTokens
  llm({ model, maxTokens: 9 })
  // @ts-expect-error -- it is called reasoning
  llm({ model: openai('gpt-5'), params: { reasonning: { effort: 'low' } } })
  // @ts-expect-error -- agents have a limit of steps in their strategy
  agent({ model, maxSteps: 3 })
})

test('answers', async () => {
  const structure = z.object({ n: z.number() })
  const turn = await llm({ model, structure }).generate('x')
  expectTypeOf(turn.text).toBeString()
  // @ts-expect-error -- nothing has checked the data
  void turn.data?.n
  const checked = await llm({ model, structure, validate: true }).generate('x')
  expectTypeOf(checked.data.n).toBeNumber()
})

test('agents of the runtime', async () => {
  const support = defineAgent({
    name: 'support',
    instructions: 'Help.',
    model,
    tools: [weather],
    output: z.object({ title: z.string() }),
  })
  expectTypeOf(support).toEqualTypeOf<AgentDefinition<{ title: string }>>()
  expectTypeOf(withModel(support, model)).toEqualTypeOf<AgentDefinition<{ title: string }>>()
  const output = z.object({ title: z.string() })
  const prompt = definePrompt({ name: 'p', prompt: '', model, output })
  expectTypeOf(defineAgent({ name: 'a', sideA: { prompt } })).toEqualTypeOf<
    AgentDefinition<{ title: string }>
  >()

  const runtime = await createRuntime({ agents: [support] })
  const thread = await runtime.threads.create({ agent: support })
  const { data } = await runtime.threads.run(thread.id, 'x')
  expectTypeOf(data).toEqualTypeOf<{ title: string } | undefined>()
  const named = await runtime.threads.create({ agent: 'support' })
  expectTypeOf((await runtime.threads.run(named.id, 'x')).data).not.toBeAny()
  const id: string = thread.id
  void runtime.threads.run(id, 'x')

  // @ts-expect-error -- instructions without a model
  defineAgent({ name: 'a', instructions: 'Help.' })
  // @ts-expect-error -- neither instructions nor sideA
  defineAgent({ name: 'a' })
  // @ts-expect-error -- both instructions and sideA
  defineAgent({ name: 'a', instructions: 'Help.', model, sideA: { prompt: 'p' } })
  // @ts-expect-error -- a misspelt field
  defineAgent({ name: 'a', instructions: 'Help.', model, tols: [] })
  // @ts-expect-error -- the model of sideA belongs to its prompt
  defineAgent({ name: 'a', sideA: { prompt: 'p' }, model })
})
