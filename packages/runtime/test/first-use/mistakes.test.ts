// The mistakes that people make in their first hour, written as JavaScript (the compiler refuses most of them, see
// mistakes.test-d.ts), and the message that each one gets.
import { mkdtemp, mkdir, rm, writeFile } from 'node:fs/promises'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { expect, test } from 'vitest'
import { z } from 'zod'
import { agent } from '@skein/agents'
import { llm, tool } from '@skein/ai'
import { openai } from '@skein/ai/openai'
import { costMiddleware } from '@skein/ai/middleware'
import { calls, says, scripted } from '@skein/ai/testing'
import {
  asSubagent,
  createRegistry,
  createRuntime,
  defineAgent,
  defineEffect,
  definePrompt,
  defineTool,
  discover,
} from '@skein/runtime'

const model = scripted([says('{"n":"x"}')])
const parameters = z.object({ city: z.string() })
const weather = tool({ name: 'weather', description: 'Weather.', parameters, run: () => 'mild' })

/** Calls a function as JavaScript would: with options that its types refuse. */
const loose = <Result>(call: (options: never) => Result, options: unknown): Result =>
  call(options as never)

/** Loads an agent with these tools. */
const loaded = (...tools: readonly unknown[]): unknown =>
  createRegistry({ agents: [loose(defineAgent, { name: 'a', instructions: '', model, tools })] })

const base = { name: 'weather', description: 'Weather.' }
const write = { ...base, args: parameters, risk: 'write_high_risk', execute: () => 'ok' }

/** What is written, and texts of the error that it gets: of its message and of its hint. */
const mistakes: Readonly<Record<string, readonly [() => unknown, ...(string | RegExp)[]]>> = {
  'tool({ inputSchema, execute })': [
    () => loose(tool, { ...base, inputSchema: parameters, execute: () => 'mild' }),
    'The tool "weather" cannot be defined: ',
    'inputSchema (use parameters), execute (use run)',
    'tool({ name, description, parameters, run(args, context) })',
  ],
  'tool({ risk, rollback })': [
    () => loose(tool, { ...base, parameters, run: () => '', rollback: 'impossible' }),
    'rollback (use governed(tool, { risk, … }) of @skein/governance)',
  ],
  'defineTool without risk': [
    () => loaded(loose(defineTool, { ...base, args: parameters, execute: () => 'mild' })),
    'tool "weather": risk: is required, one of "read_only", "write_low_risk", "write_high_risk"',
  ],
  'execute: ({ city }) =>, the arguments first': [
    () => loose(defineTool, { ...write, execute: ({ city }: { city: string }) => city }),
    'tool "weather": execute: takes the state of the thread first and the arguments second: write execute: (state, { city }) => …',
  ],
  'high risk without rollback': [
    () => loaded(loose(defineTool, write)),
    `tool "weather": rollback: is required for write_high_risk: { tool, args }, a function that returns how to undo a call, or 'impossible'`,
  ],
  'high risk without rollback, with tool()': [
    () => loaded(tool({ ...base, parameters, risk: 'write_high_risk', run: () => '' })),
    'a tool of tool() gets it from toolFrom(tool, { risk, rollback })',
  ],
  "llm({ model: 'openai/gpt-5' })": [
    () => loose(llm, { model: 'openai/gpt-5' }),
    'The model is the text "openai/gpt-5", but it has to be a model of a vendor.',
    "Write model: openai('gpt-5'), with the vendor's function from @skein/ai/openai.",
  ],
  "llm({ model: 'gpt-5' })": [() => loose(llm, { model: 'gpt-5' }), "Write model: openai('gpt-5')"],
  "agent({ model: 'openai/gpt-5' })": [
    () => loose(agent, { model: 'openai/gpt-5' }).query('Hello'),
    'The model is the text "openai/gpt-5"',
  ],
  "defineAgent({ model: 'openai/gpt-5' })": [
    () =>
      createRegistry({
        agents: [defineAgent({ name: 'a', instructions: '', model: 'openai/gpt-5' })],
      }),
    'there is no model "openai/gpt-5"; give the model itself, such as openai("gpt-5") of @skein/ai/openai',
  ],
  'generate({ prompt })': [
    () => loose((input) => llm({ model }).generate(input), { prompt: 'Hello' }),
    'Expected a message but got an object.',
  ],
  'data that does not fit, with validate': [
    () =>
      llm({
        model: scripted([says('{"n":"x"}')]),
        structure: z.object({ n: z.number() }),
        validate: true,
      }).generate('x'),
    'The structured answer does not fit its schema: /n:',
    '`repair: 1` asks the model once more',
  ],
  'defineAgent({ name, prompt, model })': [
    () => createRegistry({ agents: [loose(defineAgent, { name: 'a', prompt: 'Help.', model })] }),
    'agent "a": instructions: is required: the text of the prompt',
  ],
  'defineAgent({ instructions, sideA })': [
    () => loose(defineAgent, { name: 'a', instructions: 'x', model, sideA: { prompt: 'x' } }),
    'agent "a": instructions: must be left out, because sideA is given',
  ],
  'llm({ tools: { weather } })': [
    () => loose(llm, { model, tools: { weather } }),
    'The option tools is not a list.',
    'Write tools: [weather]; each tool has its name',
  ],
  'agent({ tools: { weather } })': [
    () => loose(agent, { model, tools: { weather } }),
    'The option tools is not a list.',
    'Write tools: [weather]',
  ],
  'llm({ tools: [defineTool(…)] })': [
    () =>
      llm({
        model,
        tools: [defineTool({ ...base, risk: 'read_only', execute: () => 'mild' })],
      }),
    'The tool "weather" is made by defineTool of @skein/runtime, whose code gets the state of a thread.',
    'Make it with tool({ name, description, parameters, run(args) }) of @skein/ai',
  ],
  'llm({ maxTokens, stopSequences, temprature, maxSteps })': [
    () => loose(llm, { model, maxTokens: 9, stopSequences: ['x'], temprature: 1, maxSteps: 2 }),
    'llm() does not have these options: maxTokens (use maxOutputTokens), stopSequences (use stop), temprature (did you mean temperature?), maxSteps (use toolStrategy.maxIterations).',
    'Fields of the vendor go in params.',
  ],
  'model.with({ maxTokens })': [
    () => loose((changes) => llm({ model }).with(changes), { maxTokens: 9 }),
    'maxTokens (use maxOutputTokens)',
  ],
  'agent({ maxSteps, instructions, memory })': [
    () => loose(agent, { model, maxSteps: 3, instructions: 'x', memory: {} }),
    'agent() does not have these options: maxSteps (use execution: loop({ maxIterations })), instructions (use system), memory (use the state that each call returns).',
  ],
  'agent({ middleware: [costMiddleware(…)] })': [
    () => loose(agent, { model, middleware: [costMiddleware({ prices: {} } as never)] }),
    'would never be called.',
    'goes in `llmMiddleware`',
  ],
  'toolChoice of a missing tool': [
    () => llm({ model, tools: [weather], toolChoice: { tool: 'wether' } }),
    'toolChoice names the tool "wether", which is not among the tools.',
    'Did you mean "weather"?',
  ],
  "toolChoice: 'weather'": [
    () => loose(llm, { model, tools: [weather], toolChoice: 'weather' }),
    'toolChoice is "weather", which is none of auto, none, required.',
    'Write toolChoice: { tool: "weather" }.',
  ],
  "toolChoice: { type: 'tool', toolName }": [
    () =>
      loose(llm, { model, tools: [weather], toolChoice: { type: 'tool', toolName: 'weather' } }),
    'toolChoice has no tool.',
    'Write toolChoice: { tool: "weather" }.',
  ],
  'llm({ tools: [() => …] })': [
    () => loose(llm, { model, tools: [weather, () => 'mild'] }),
    'Item 1 of the tools is not a tool.',
    'A tool has a name, a description, parameters and a function `run`.',
  ],
  'llm({ tools: [undefined] })': [
    () => loose(llm, { model, tools: [undefined] }),
    'Item 0 of the tools is not a tool.',
  ],
  'llm({ toolStrategy: { maxSteps } })': [
    () => loose(llm, { model, toolStrategy: { maxSteps: 3 } }),
    'toolStrategy does not have these options: maxSteps (use maxIterations).',
  ],
  'defineAgent({ tools: { weather } })': [
    () =>
      createRegistry({
        agents: [loose(defineAgent, { name: 'a', instructions: '', model, tools: { weather } })],
      }),
    'prompt "a": tools: must be a list, not an object; write [weather]',
  ],
  'defineEffect({ run })': [
    () => loose(defineEffect, { name: 'remind', run: () => '' }),
    'effect "remind": run: is not a known field; write execute: (state, args) => …',
  ],
  'asSubagent(agent, { description })': [
    () => {
      const librarian = defineAgent({ name: 'librarian', instructions: '', model })
      return loose((options) => asSubagent(librarian, options), { description: 'Finds books.' })
    },
    'asSubagent() does not have these options: description (use toolDescription).',
  ],
  'repair without structure': [
    () => llm({ model, repair: 1 }),
    'The option repair has no effect without structure.',
    'as `structure`, and `validate: true` to check it',
  ],
  'threads.run before start()': [
    async () => {
      const runtime = await createRuntime({
        agents: [defineAgent({ name: 'a', instructions: '', model })],
      })
      const { id } = await runtime.threads.create({ agent: 'a' })
      await runtime.threads.run(id, 'Hello')
    },
    'The runtime was not started, so no thread would answer.',
    'Write `await runtime.start()` before threads.run().',
  ],
  'a misspelt name of an agent': [
    async () => {
      const support = defineAgent({ name: 'support', instructions: '', model })
      const runtime = await createRuntime({ agents: [support] })
      await runtime.threads.create({ agent: 'suport' })
    },
    'There is no agent "suport"; did you mean "support"?',
  ],
  'no key of the vendor': [
    () => llm({ model: openai('gpt-5'), config: { apiKey: () => '' } }).generate('x'),
    /API key for openai|key/i,
  ],
  'a folder without secretKey': [
    async () => {
      const folder = await mkdtemp(join(tmpdir(), 'skein-'))
      try {
        await createRuntime({
          agents: [defineAgent({ name: 'a', instructions: '', model })],
          folder,
        })
      } finally {
        await rm(folder, { recursive: true })
      }
    },
    'secretKey',
  ],
  'a script with too few steps': [
    () =>
      llm({ model: scripted([calls('weather', { city: 'Oslo' })]), tools: [weather] }).generate(
        'x',
      ),
    /script/,
  ],
  'a tool that is not defined, in a prompt': [
    () => loaded(weather, 'wether'),
    'there is no tool or agent "wether"; did you mean "weather"?',
  ],
  'z.date() in args': [
    () =>
      defineTool({
        ...base,
        args: z.object({ at: z.date() }),
        risk: 'read_only',
        execute: () => '',
      }),
    'tool "weather": args: ',
    /at|Date/,
  ],
  'defineTool({ inputSchema, handler })': [
    () =>
      loaded(
        loose(defineTool, {
          ...base,
          risk: 'read_only',
          inputSchema: parameters,
          handler: () => '',
        }),
      ),
    'tool "weather": inputSchema: is not a known field; write args',
    'tool "weather": handler: is not a known field; write execute',
  ],
  'defineTool({ parameters, run })': [
    () => loose(defineTool, { ...base, risk: 'read_only', parameters, run: () => '' }),
    'tool "weather": parameters: is an option of tool(); write args',
    'tool "weather": run: is an option of tool(); write execute: (state, args) => …',
  ],
  'defineAgent({ tols })': [
    () =>
      createRegistry({
        agents: [loose(defineAgent, { name: 'a', instructions: '', model, tols: [] })],
      }),
    'agent "a": tols: is not a known field; did you mean "tools"?',
  ],
  'definePrompt({ temperature })': [
    () => {
      const prompt = loose(definePrompt, { name: 'p', prompt: '', model, temperature: 1 })
      return createRegistry({
        agents: [defineAgent({ name: 'a', sideA: { prompt: prompt as never } })],
      })
    },
    'prompt "p": temperature: is not a known field; write providerOptions: { temperature }',
  ],
}

test.each(Object.entries(mistakes))('%s', async (_, [write, ...texts]) => {
  const error: unknown = await Promise.resolve()
    .then(write)
    .then(
      () => undefined,
      (thrown: unknown) => thrown,
    )
  expect(error, 'this mistake passes unseen').toBeInstanceOf(Error)
  const { message, hint = '' } = error as Error & { readonly hint?: string }
  if (process.env['SHOW_MISTAKES']) console.log(`${_}\n    ${message}\n    → ${hint}`)
  for (const text of texts) expect(`${message}\n${hint}`).toMatch(text)
})

test('files with a syntax error, a wrong name or no default export are named, with the cure', async () => {
  const folder = await mkdtemp(join(tmpdir(), 'skein-'))
  try {
    for (const kind of ['agents', 'tools']) await mkdir(join(folder, kind))
    await writeFile(join(folder, 'package.json'), '{"type":"module"}')
    await writeFile(join(folder, 'agents', 'broken.ts'), 'export default {{')
    await writeFile(join(folder, 'agents', 'none.ts'), 'export const support = {}')
    await writeFile(
      join(folder, 'tools', 'refund.ts'),
      "export default { kind: 'tool', name: 'pay' }",
    )
    const error: unknown = await discover(folder).catch((thrown: unknown) => thrown)
    const { message } = error as Error
    expect(message).toMatch(/agents\/broken\.ts.*cannot be imported/)
    expect(message).toMatch(
      /agents\/none\.ts\): has no default export; it exports support; write: export default defineAgent/,
    )
    expect(message).toMatch(/tools\/refund\.ts\): name: must be "refund", like its file/)
  } finally {
    await rm(folder, { recursive: true })
  }
})

test('what used to be a mistake and is now right: text, textStream, a simple agent', async () => {
  const turn = await llm({ model: scripted([says('Hello.')]) }).generate('x')
  expect(turn.text).toBe('Hello.')
  let text = ''
  for await (const part of llm({ model: scripted([says('Hello.')]) }).stream('x').textStream)
    text += part
  expect(text).toBe('Hello.')
  const simple = defineAgent({ name: 'a', instructions: 'Help.', model, tools: [weather] })
  expect(createRegistry({ agents: [simple] }).agent('a').a.prompt.tools).toHaveLength(1)
})
