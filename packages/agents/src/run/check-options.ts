import type { LLMOptions } from '@skein/ai'
import { LLM_OPTIONS } from '@skein/ai/engine'
import { type OptionNames, unknownOptions } from '@skein/base'
import { invalidUse } from '../contract/agent-error.ts'
import type { Agent } from '../contract/agent-types.ts'

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
