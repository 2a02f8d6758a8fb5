import { type OptionNames, unknownOptions } from '@skein/base'
import {
  hasModelHooks,
  type LLMInstance,
  type LLMOptions,
  type Middleware as LLMMiddleware,
} from '@skein/ai'
import { LLM_OPTIONS } from '@skein/ai/engine'
import { invalidUse, unknownCost } from '../contract/agent-error.ts'
import type { Agent, Middleware, ModellessOptions } from '../contract/agent-types.ts'

/** The options that agents have besides those of `llm()`, and their own members; the type ensures that none is missing. */
const optionNames: {
  readonly [Name in Exclude<keyof Agent, keyof LLMOptions> | 'middleware']-?: true
} = {
  id: true,
  execution: true,
  middleware: true,
  llmMiddleware: true,
  strategy: true,
  checkpoints: true,
  sessionId: true,
  durability: true,
  onCheckpointError: true,
  // An agent may be spread into the options of another one.
  generate: true,
  stream: true,
  ask: true,
  query: true,
  resume: true,
  resumeStream: true,
  flush: true,
}

const AGENT_OPTIONS: OptionNames = {
  known: [...LLM_OPTIONS.known, ...Object.keys(optionNames)],
  renamed: {
    ...LLM_OPTIONS.renamed,
    prompt: 'system',
    name: 'the name of the tool: subagent({ name, … })',
    memory: 'the state that each call returns',
    checkpointer: 'checkpoints',
    subagents: 'tools: [subagent({ … })]',
    handoffs: 'defineAgent of @skein/runtime',
    maxSteps: 'execution: loop({ maxIterations })',
    maxTurns: 'execution: loop({ maxIterations })',
    maxIterations: 'execution: loop({ maxIterations })',
    stopWhen: 'strategy: { stopCondition }',
    stopCondition: 'strategy: { stopCondition }',
    onStepEnd: 'strategy: { onStepEnd }',
  },
}

/** Throws for options that do not exist: they would never have an effect. */
export function checkOptionNames(options: object): void {
  const unknown = unknownOptions(options ?? {}, AGENT_OPTIONS)
  if (unknown === undefined) return
  throw invalidUse(
    `agent() does not have these options: ${unknown}.`,
    'It has the options of llm(), and execution, strategy, middleware, llmMiddleware, checkpoints, sessionId, durability and onCheckpointError.',
  )
}

/** The hooks of an agent's middleware that middleware of a model does not have. */
const agentHooks: Readonly<Record<Exclude<keyof Middleware, 'name' | 'onError'>, true>> = {
  before: true,
  after: true,
  onInference: true,
}

/**
 * Throws for middleware in the wrong option. Both kinds have the same form but other hooks, none of which would ever
 * be called.
 */
export function checkMiddleware({ middleware = [], llmMiddleware = [] }: ModellessOptions): void {
  const wrong = [
    ...middleware
      .filter((one) => hasModelHooks(one) && !hasAgentHooks(one))
      .map(named('middleware')),
    ...llmMiddleware
      .filter((one) => hasAgentHooks(one) && !hasModelHooks(one))
      .map(named('llmMiddleware')),
  ]
  if (wrong.length === 0) return
  throw invalidUse(
    `The hooks of ${wrong.join(' and ')} would never be called.`,
    'Middleware of the model (onRequest, wrapInference, …) goes in `llmMiddleware`; middleware of the agent (before, after, onInference) goes in `middleware`.',
  )
}

function hasAgentHooks(middleware: unknown): boolean {
  if (typeof middleware !== 'object' || middleware === null) return false
  return Object.keys(agentHooks).some((name) => name in middleware)
}

function named(option: string): (middleware: { readonly name: string }) => string {
  return ({ name }) => `"${name}" in ${option}`
}

/**
 * Throws if it is certain that the cost of the model will not be known: its price is missing in the catalog of
 * `costMiddleware`, or nothing computes a cost and the vendor reports none.
 */
export function checkCost(llm: LLMInstance, given: readonly LLMMiddleware[] = []): void {
  const { provider, modelId, wire } = llm.model
  // Vendors that report a cost, e.g. OpenRouter, speak a format of OpenAI, which has none itself.
  const reportsCost = wire === undefined || (wire.startsWith('openai-') && provider !== 'openai')
  if (reportsCost) return
  const cost = given.find(hasPrices)
  // Middleware of the application may set the cost in the events.
  const mayCompute = given.some((one) => one !== cost && (one.wrapInference ?? one.onStreamEvent))
  if (mayCompute) return
  if (!cost || cost.isPriced(provider, modelId) === false)
    throw unknownCost(`the model "${modelId}" of ${provider}`)
}

type WithPrices = LLMMiddleware & {
  isPriced(provider: string, modelId: string): boolean | undefined
}

function hasPrices(middleware: LLMMiddleware): middleware is WithPrices {
  return typeof (middleware as Partial<WithPrices>).isPriced === 'function'
}
