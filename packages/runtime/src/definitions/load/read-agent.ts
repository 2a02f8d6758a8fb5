import type { Agent } from '@skein/agents'
import type { Tool } from '@skein/ai'
import { isPlainObject } from '@skein/base'
import { asToolDefinition } from '../define-tool.ts'
import { EVIDENCE_TYPES, type Need, type Risk, RISKS, type TaskClass } from '@skein/governance'
import type {
  AgentDefinition,
  AgentTaskClass,
  Budget,
  Ref,
  SideConfig,
  SideSubagent,
} from '../agent-definition.ts'
import type { HookDefinition } from '../hook-definition.ts'
import type { PromptDefinition } from '../prompt-definition.ts'
import type { ToolDefinition } from '../tool-definition.ts'
import { isModelReference, reference } from './read-definition.ts'
import { readSideSubagent } from './read-prompt.ts'
import {
  amount,
  at,
  callback,
  count,
  type Fields,
  flag,
  kindOf,
  readList,
  oneOf,
  plainObject,
  type Reader,
  readFields,
  report,
  text,
  textRecord,
  word,
} from './readers.ts'

/** The valid fields of an agent. */
export interface ReadAgent extends Partial<
  Omit<AgentDefinition, 'sideA' | 'sideB' | 'hooks' | 'taskClass' | '~data'>
> {
  readonly sideA?: ReadSide
  readonly sideB?: ReadSide
  readonly hooks?: readonly (Ref<HookDefinition> | undefined)[]
  readonly taskClass?: ReadTaskClass
}

type BindingField = 'sessionStop' | 'sessionFail' | 'sessionStatus'

/** The valid fields of a side. */
export interface ReadSide extends Partial<Omit<SideConfig, BindingField | 'subagents'>> {
  readonly subagents?: readonly (SideSubagent | undefined)[]
  readonly sessionStop?: ReadBinding
  readonly sessionFail?: ReadBinding
  readonly sessionStatus?: ReadBinding
}

/** A tool that controls the session, read from its short form (a reference) or its long form (an object). */
export interface ReadBinding {
  readonly name?: Ref<ToolDefinition>
  /** Whether the binding was written as an object, in which the name is a separate field. */
  readonly isObject: boolean
  readonly messageProperty?: string
  readonly attachmentsProperty?: string
}

/** The valid fields of a task class (the rules of governance for an agent). */
export interface ReadTaskClass extends Partial<Omit<AgentTaskClass, 'needs' | 'verifiers'>> {
  readonly needs?: readonly (Need | undefined)[]
  readonly verifiers?: readonly unknown[]
}

const bindingObject = readFields<Omit<ReadBinding, 'isObject'>>(
  { name: reference<ToolDefinition>('tool'), messageProperty: word, attachmentsProperty: word },
  ['name'],
)

const binding: Reader<ReadBinding> = (value, place) => {
  if (typeof value === 'string' || asToolDefinition(value)) {
    const name = reference<ToolDefinition>('tool')(value, place)
    return { isObject: false, name }
  }
  if (!isPlainObject(value)) {
    return report(
      place,
      `must be a tool’s name or { name, messageProperty?, attachmentsProperty? }, not ${kindOf(value)}`,
    )
  }
  const fields = bindingObject(value, place)
  return fields && { ...fields, isObject: true }
}

/** The mark of a tool that runs an agent: `isSubagent` of `@skein/agents`, which is not loaded for this alone. */
const SUBAGENT = Symbol.for('skein.subagent')

/** Reads an agent made with `agent()` of `@skein/agents`: it must have a model, and no tools that run agents. */
const uapAgent: Reader<Agent> = (value, place) => {
  const { id, tools, generate, model } = (value ?? {}) as Partial<Record<keyof Agent, unknown>>
  if (typeof id !== 'string' || !Array.isArray(tools) || typeof generate !== 'function')
    return report(place, `must be an agent() of @skein/agents, not ${kindOf(value)}`)
  if (!isModelReference(model))
    return report(at(place, 'model'), 'is required, because the agent is a side')
  for (const [index, tool] of (tools as readonly Tool[]).entries()) {
    if (!(SUBAGENT in tool)) continue
    const problem = `"${tool.name}" is a sub-agent, which is not journaled inside a side`
    report(
      at(at(place, 'tools'), index),
      `${problem}; define it with defineAgent and list it in a prompt, or give its work to an ordinary tool`,
    )
  }
  return value as Agent
}

const sideFields = readFields<ReadSide>({
  prompt: reference<PromptDefinition>('prompt'),
  agent: uapAgent,
  human: oneOf(true),
  handler: callback(),
  subagents: readList(readSideSubagent),
  label: text,
  stopOnResponse: flag,
  stopTool: reference<ToolDefinition>('tool'),
  stopToolResponseProperty: word,
  maxSteps: count,
  sessionStopOnResponse: flag,
  sessionStop: binding,
  sessionFail: binding,
  sessionStatus: binding,
})

/** The fields that say who plays a side. */
const backings = ['prompt', 'agent', 'human', 'handler'] as const

const side: Reader<ReadSide> = (value, place) => {
  const fields = sideFields(value, place)
  const members = isPlainObject(value) ? value : {}
  const [first, ...others] = backings.filter((field) => members[field] !== undefined)
  if (fields && !first) report(at(place, 'prompt'), 'is required, or an agent in its place')
  for (const other of others)
    report(at(place, other), `must be left out, because the side has a ${first}`)
  if (first === 'human' || first === 'handler')
    for (const field of ['subagents', 'stopTool', 'maxSteps', 'sessionStop', 'sessionFail'])
      if (members[field] !== undefined)
        report(at(place, field), `must be left out, because the side has no model but a ${first}`)
  return fields
}

const limits: Fields<Omit<Budget, 'tree'>> = {
  maxTokens: count,
  maxCostUsd: amount,
  maxDurationMs: count,
}

const taskClass = readFields<ReadTaskClass>(
  {
    name: word,
    needs: readList(
      readFields<Need>(
        {
          type: oneOf(...EVIDENCE_TYPES),
          source: word,
          subtype: word,
          min: count,
          maxAgeMs: count,
          where: callback(),
        },
        ['type'],
      ),
    ),
    verifiers: readList<unknown>(plainObject),
    policy: callback(),
    repair: readFields<NonNullable<TaskClass['repair']>>(
      { max: amount, to: oneOf('plan', 'execute'), undoFirst: flag },
      ['max'],
    ),
    limits: readFields<NonNullable<TaskClass['limits']>>({
      deadlineMs: count,
      toolCalls: amount,
      depth: amount,
      ceiling: oneOf<Risk>(...RISKS),
    }),
    acceptModelGraded: flag,
    acceptInDoubt: flag,
    allowManualRollback: flag,
  },
  ['name', 'needs', 'verifiers'],
)

const agentFields: Fields<ReadAgent> = {
  name: word,
  type: oneOf('ai_human', 'dual_ai'),
  sideA: side,
  sideB: side,
  maxSessionTurns: count,
  title: text,
  description: text,
  icon: text,
  exposeAsTool: flag,
  toolDescription: word,
  env: textRecord,
  hooks: readList(reference<HookDefinition>('hook')),
  packageName: text,
  version: text,
  author: text,
  license: text,
  taskClass,
  budget: readFields<Budget>({ ...limits, tree: readFields(limits) }),
}

/** Reads an agent. */
export const readAgent: Reader<ReadAgent> = (value, place) => {
  const fields = readAgentFields(value, place)
  if (isPlainObject(value) && value['sideA'] === undefined)
    report(at(place, 'sideA'), 'is required, or instructions and model in its place')
  return fields
}

const readAgentFields = readFields(agentFields, ['name'], {
  alsoKnown: ['instructions', 'model', 'tools', 'output', 'maxSteps'],
  renamed: {
    prompt: 'write instructions',
    system: 'write instructions',
    systemPrompt: 'write instructions',
    instructions: 'it belongs to an agent without sideA',
    model: 'it belongs to the prompt of sideA',
    tools: 'they belong to the prompt of sideA',
    output: 'it belongs to the prompt of sideA',
    outputType: 'write output',
    outputSchema: 'write output',
    structure: 'write output',
    inputSchema: 'write requiredSchema',
    temperature: 'write providerOptions: { temperature }',
    maxTokens: 'write providerOptions, with the name that the vendor has for it',
    maxOutputTokens: 'write providerOptions, with the name that the vendor has for it',
    params: 'write providerOptions',
    subagents: 'write tools: [asSubagent(agent)]',
    agents: 'write tools: [asSubagent(agent)]',
    handoffs: 'write tools: [agent], and give that agent exposeAsTool: true',
    memory: 'threads keep their messages; a tool has state.getValue and state.setValue',
    maxTurns: 'write maxSteps, or maxSessionTurns for an agent with two sides',
  },
})
