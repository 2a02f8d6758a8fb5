import { type } from 'arktype'
import { expectTypeOf, test } from 'vitest'
import { z } from 'zod'
import { agent } from '@skein/agents'
import type { JsonObject } from '@skein/base'
import { llm, tool, type Tool } from '@skein/ai'
import { says, scripted } from '@skein/ai/testing'
import { governed, type Risk } from '@skein/governance'
import type { StoredMessage, ThreadState } from '../contract/thread-state.ts'
import { createRegistry } from './load/registry.ts'
import { defineAgent } from './define-agent.ts'
import { defineEffect } from './define-effect.ts'
import { defineHook, definePrompt } from './define.ts'
import { defineTool, toolFrom, type NoArguments } from './define-tool.ts'
import type { AgentDefinition } from './agent-definition.ts'
import type { PromptDefinition } from './prompt-definition.ts'
import type { RuntimeToolContext, ToolDefinition } from './tool-definition.ts'
import { type Registry } from './resolved.ts'

const model = scripted([says('x')])
const base = { name: 'refund', description: 'Refunds.', risk: 'write_low_risk' } as const

test('arguments are inferred from the schema in every callback of one object literal', () => {
  const refund = defineTool({
    ...base,
    args: z.object({ order: z.string(), cents: z.number().default(0) }),
    raise: (args) => {
      expectTypeOf(args).toEqualTypeOf<{ order: string; cents: number }>()
      return args.cents > 100 ? 'write_high_risk' : 'write_low_risk'
    },
    rollback: (args, context) => {
      expectTypeOf(args).toEqualTypeOf<{ order: string; cents: number }>()
      expectTypeOf(context.idempotencyKey).toBeString()
      return { type: 'tool_call', target: 'charge', payload: { order: args.order } }
    },
    probe: (args) => {
      expectTypeOf(args).toEqualTypeOf<{ order: string; cents: number }>()
      return 'applied'
    },
    execute: (state, args, context) => {
      expectTypeOf(state).toEqualTypeOf<ThreadState>()
      expectTypeOf(args).toEqualTypeOf<{ order: string; cents: number }>()
      expectTypeOf(context).toEqualTypeOf<RuntimeToolContext>()
      return { done: true }
    },
    evidence: (result, args) => {
      expectTypeOf(result).toEqualTypeOf<{ done: boolean }>()
      return { type: 'tool_result', payload: { order: args.order } }
    },
  })
  expectTypeOf(refund).toExtend<ToolDefinition>()
  expectTypeOf(refund).toExtend<Tool>()
  expectTypeOf(defineTool({ ...base })).toEqualTypeOf<ToolDefinition>()

  defineTool({
    ...base,
    args: type({ order: 'string' }),
    execute: (_state, args) => expectTypeOf(args).toEqualTypeOf<{ order: string }>(),
  })
})

test('a property that the schema lacks is an error', () => {
  defineTool({
    ...base,
    args: z.object({ order: z.string() }),
    // @ts-expect-error -- no such property
    execute: (_state, args) => args.missing,
  })
  defineTool({
    ...base,
    args: z.object({ order: z.string() }),
    // @ts-expect-error -- no such property
    raise: ({ missing }) => (missing ? 'write_high_risk' : 'read_only'),
  })
})

test('a tool without a schema has no arguments', () => {
  defineTool({
    ...base,
    execute: (_state, args) => expectTypeOf(args).toEqualTypeOf<NoArguments>(),
  })
  defineTool({
    ...base,
    // @ts-expect-error -- arguments need a schema
    execute: (_state, args: { order: string }) => args.order,
  })
})

test('risk has to be said, and is one of three', () => {
  // @ts-expect-error -- no risk
  defineTool({ name: 'a', description: '' })
  // @ts-expect-error -- no such tier
  defineTool({ name: 'a', description: '', risk: 'harmless' })
  // @ts-expect-error -- no risk
  toolFrom(tool({ ...base, parameters: z.object({}), run: () => 1 }), {})
})

test('a high-risk write that runs here says how it is undone', () => {
  const risky = { name: 'pay', description: '', risk: 'write_high_risk' } as const
  const args = z.object({ cents: z.number() })
  // @ts-expect-error -- no rollback
  defineTool({ ...risky, execute: () => 1 })
  // @ts-expect-error -- no rollback
  defineTool({ name: 'pay', description: '', risk: 'write_high_risk', args, execute: () => 1 })
  // @ts-expect-error -- undefined is none
  defineTool({ ...risky, rollback: undefined, execute: () => 1 })
  // @ts-expect-error -- no such word
  defineTool({ ...risky, rollback: 'perhaps', execute: () => 1 })
  // @ts-expect-error -- no rollback
  toolFrom(tool({ ...risky, parameters: args, run: () => 1 }), { risk: 'write_high_risk' })

  defineTool({ ...risky, rollback: 'impossible', execute: () => 1 })
  const pay = defineTool({
    name: 'pay',
    description: '',
    risk: 'write_high_risk',
    args,
    rollback: ({ cents }, { idempotencyKey }) => {
      expectTypeOf(cents).toBeNumber()
      expectTypeOf(idempotencyKey).toBeString()
      return { type: 'tool_call', target: 'refund', payload: { cents } }
    },
    execute: (state, { cents }) => {
      expectTypeOf(state).toEqualTypeOf<ThreadState>()
      return { paid: cents }
    },
    evidence: (result) => ({ type: 'tool_result', payload: result.paid }),
  })
  expectTypeOf(pay.run).returns.resolves.toEqualTypeOf<{ paid: number }>()
  defineTool({
    ...risky,
    args,
    rollback: {
      tool: 'refund',
      args: ({ cents }, { idempotencyKey }) => {
        expectTypeOf(cents).toBeNumber()
        return { cents, idempotencyKey }
      },
    },
    execute: () => 1,
  })
  // @ts-expect-error -- it names no tool
  defineTool({ ...risky, args, rollback: { args: () => ({}) }, execute: () => 1 })
  toolFrom(tool({ name: 'a', description: '', parameters: args, run: () => 1 }), {
    risk: 'write_high_risk',
    rollback: ({ cents }) => ({ type: 'tool_call', target: 'refund', payload: { cents } }),
  })
  // A risk that is known only at run time needs a rollback, because it may be the highest.
  const risk = 'write_low_risk' as Risk
  defineTool({ name: 'pay', description: '', risk, rollback: 'impossible', execute: () => 1 })
  // @ts-expect-error -- it may be the highest
  defineTool({ name: 'pay', description: '', risk, execute: () => 1 })
  // A tool of the client runs elsewhere.
  expectTypeOf(defineTool(risky)).toEqualTypeOf<ToolDefinition>()
})

test('a tool from elsewhere keeps its types for governance', () => {
  const search = tool({
    name: 'search',
    description: '',
    parameters: z.object({ text: z.string() }),
    run: ({ text }) => text.length,
  })
  const made = toolFrom(search, {
    risk: 'read_only',
    raise: (args) => (args.text === '' ? 'write_low_risk' : 'read_only'),
    evidence: (result) => ({ type: 'tool_result', payload: result.toFixed() }),
  })
  expectTypeOf(made).toExtend<ToolDefinition>()
  expectTypeOf(made).toExtend<Tool>()
})

test('references are names or definitions', () => {
  const refund = defineTool({ ...base })
  const child = defineAgent({ name: 'child', sideA: { prompt: 'worker' } })
  const prompt = definePrompt({
    name: 'p',
    prompt: [{ type: 'text', content: 'x' }],
    model,
    tools: ['by_name', refund, child, { name: child, blocking: false }, { name: refund, env: {} }],
    output: z.object({ answer: z.string() }),
    requiredSchema: type({ topic: 'string' }),
  })
  const agent = defineAgent({
    name: 'a',
    sideA: { prompt, stopTool: refund, sessionStop: { name: refund, messageProperty: 'm' } },
    sideB: { prompt: 'other', sessionFail: 'fail', sessionStop: refund },
  })
  expectTypeOf(prompt).toEqualTypeOf<PromptDefinition<{ answer: string }>>()
  expectTypeOf(agent).toEqualTypeOf<AgentDefinition<{ answer: string }>>()
  expectTypeOf(child).toEqualTypeOf<AgentDefinition>()
  expectTypeOf(createRegistry({ agents: [agent] })).toEqualTypeOf<Registry>()

  // @ts-expect-error -- a tool is no prompt
  defineAgent({ name: 'a', sideA: { prompt: refund } })
  // @ts-expect-error -- a misspelt field
  defineAgent({ name: 'a', sideA: { prompt, stopOnRespons: false } })
})

test('hooks and effects know their arguments', () => {
  const hook = defineHook({
    id: 'h',
    hook: 'filter_messages',
    execute: (state, messages) => {
      expectTypeOf(state).toEqualTypeOf<ThreadState>()
      expectTypeOf(messages).toEqualTypeOf<readonly StoredMessage[]>()
      return messages.slice(-3)
    },
  })
  defineAgent({ name: 'a', sideA: { prompt: 'p' }, hooks: [hook, 'other'] })
  // @ts-expect-error -- no such hook
  defineHook({ id: 'h', hook: 'before_everything', execute: () => undefined })
  defineEffect({
    name: 'remind',
    args: z.object({ text: z.string() }),
    execute: (_state, args) => expectTypeOf(args).toEqualTypeOf<{ text: string }>(),
  })
})

test('a tool finds the typed state of its thread in the context', () => {
  const typed = tool({
    name: 'where',
    description: '',
    parameters: z.object({ deep: z.boolean() }),
    risk: 'read_only',
    run: (args, context: RuntimeToolContext) => {
      expectTypeOf(args).toEqualTypeOf<{ deep: boolean }>()
      expectTypeOf(context.state).toEqualTypeOf<ThreadState>()
      return context.state.threadId
    },
  })
  const raw = tool({
    name: 'raw',
    description: '',
    parameters: { type: 'object' },
    run: (args) => expectTypeOf(args).toEqualTypeOf<JsonObject>(),
  })
  const stateful: Tool = {
    name: 'whoami',
    description: '',
    parameters: { type: 'object' },
    run: (_args: { deep: boolean }, context: RuntimeToolContext) => {
      expectTypeOf(context.state).toEqualTypeOf<ThreadState>()
      expectTypeOf(context.state.threadId).toBeString()
      return context.state.getMessages()
    },
  }
  const plain = tool({ ...base, parameters: z.object({}), run: () => 1 })
  const safe = governed(plain, { risk: 'read_only' })
  definePrompt({
    name: 'p',
    prompt: '',
    model,
    tools: [stateful, typed, raw, plain, safe, { name: plain, options: {} }],
  })
  createRegistry({ agents: [], tools: [stateful, typed, raw, plain, safe] })
  defineAgent({ name: 'a', sideA: { prompt: 'p', stopTool: safe, sessionStop: { name: plain } } })
  const defined = defineTool({ ...base, args: z.object({ a: z.string() }), execute: () => 1 })
  llm({ model, tools: [defined, plain] })
  agent({ model, tools: [defined, plain] })
  governed(defined, {
    risk: 'read_only',
    raise: (args) => (args.a === '' ? 'read_only' : 'write_low_risk'),
  })
})
