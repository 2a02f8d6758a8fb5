import { isPlainObject } from '@skein/base'
import { isAgentLike } from '../agent-brand.ts'
import { asToolDefinition } from '../define-tool.ts'
import type { AgentDefinition, Ref, SideSubagent } from '../agent-definition.ts'
import type {
  CompactionOptions,
  ImmediateOptions,
  PromptDefinition,
  PromptPart,
  PromptToolConfig,
  ReasoningOptions,
  ResumableOptions,
  SubagentToolConfig,
  SubpromptConfig,
  VariableDefinition,
} from '../prompt-definition.ts'
import type { HookDefinition } from '../hook-definition.ts'
import type { ToolDefinition } from '../tool-definition.ts'
import {
  at,
  count,
  type Fields,
  flag,
  kindOf,
  readList,
  oneOf,
  type Place,
  plainObject,
  type Reader,
  readFields,
  report,
  schema,
  text,
  textRecord,
  word,
} from './readers.ts'
import { modelOrReference, reference, settings, variable } from './read-definition.ts'

/** The valid fields of a prompt. */
export interface ReadPrompt extends Partial<
  Omit<PromptDefinition, 'prompt' | 'tools' | 'variables' | 'hooks'>
> {
  readonly prompt?: string | readonly (PromptPart | undefined)[]
  readonly tools?: readonly (ReadPromptTool | undefined)[]
  readonly variables?: readonly (VariableDefinition | undefined)[]
  readonly hooks?: readonly (Ref<HookDefinition> | undefined)[]
}

/**
 * An entry of `tools`. The fields of a `config` are read later, when it is known whether it names a tool or
 * an agent.
 */
export type ReadPromptTool =
  | { readonly form: 'name'; readonly name: string }
  | { readonly form: 'tool'; readonly tool: ToolDefinition }
  | { readonly form: 'agent'; readonly agent: AgentDefinition }
  | { readonly form: 'prompt'; readonly prompt: PromptDefinition }
  | {
      readonly form: 'config'
      readonly name: string | ToolDefinition | AgentDefinition | PromptDefinition
      readonly config: Record<string, unknown>
    }

const promptTool: Reader<ReadPromptTool> = (value, place) => {
  if (typeof value === 'string') {
    const name = word(value, place)
    return name === undefined ? undefined : { form: 'name', name }
  }
  const target = definition(value)
  if (target) return target
  if (!isPlainObject(value) || 'kind' in value) {
    const what = isPlainObject(value) ? 'another definition' : kindOf(value)
    return report(place, `must be a tool, an agent, a name or { name, … }, not ${what}`)
  }
  const name = targetName(value['name'], at(place, 'name'))
  if (name !== undefined) return { form: 'config', name, config: value }
  // The name of this entry is invalid, so only its other fields are checked, as far as possible.
  const isOfTool = 'env' in value || 'options' in value
  void (isOfTool ? readToolConfig(value, place) : readSubagentConfig(value, place))
  return undefined
}

function definition(
  value: unknown,
): Extract<ReadPromptTool, { form: 'tool' | 'agent' | 'prompt' }> | undefined {
  const tool = asToolDefinition(value)
  if (tool) return { form: 'tool', tool }
  // The fields of the prompt are checked separately.
  if (isPlainObject(value) && value['kind'] === 'prompt')
    return { form: 'prompt', prompt: value as unknown as PromptDefinition }
  if (!isPlainObject(value) || !isAgentLike(value)) return undefined
  // The fields of the agent are checked separately.
  return { form: 'agent', agent: value as unknown as AgentDefinition }
}

function targetName(
  value: unknown,
  place: Place,
): string | ToolDefinition | AgentDefinition | PromptDefinition | undefined {
  if (value === undefined) return report(place, 'is required')
  if (typeof value === 'string') return word(value, place)
  const target = definition(value)
  if (!target) return report(place, `must be a name, a tool or an agent, not ${kindOf(value)}`)
  if (target.form === 'prompt') return target.prompt
  return target.form === 'tool' ? target.tool : target.agent
}

const parts: { readonly [Type in PromptPart['type']]: Reader<PromptPart> } = {
  text: readFields<Extract<PromptPart, { type: 'text' }>>({ type: oneOf('text'), content: text }, [
    'content',
  ]),
  include: readFields<Extract<PromptPart, { type: 'include' }>>(
    { type: oneOf('include'), prompt: reference<PromptDefinition>('prompt') },
    ['prompt'],
  ),
  env: readFields<Extract<PromptPart, { type: 'env' }>>({ type: oneOf('env'), property: word }, [
    'property',
  ]),
}

const part: Reader<PromptPart> = (value, place) => {
  if (!isPlainObject(value)) return report(place, `must be an object, not ${kindOf(value)}`)
  const type = oneOf('text', 'include', 'env')(value['type'], at(place, 'type'))
  return type && parts[type](value, place)
}

const promptText: Reader<string | readonly (PromptPart | undefined)[]> = (value, place) => {
  if (typeof value === 'string') return value
  if (Array.isArray(value)) return readList(part)(value, place)
  return report(place, `must be a string or a list of parts, not ${kindOf(value)}`)
}

const promptFields: Fields<ReadPrompt> = {
  kind: oneOf('prompt'),
  name: word,
  prompt: promptText,
  model: modelOrReference,
  toolDescription: text,
  includeChat: flag,
  includePastTools: flag,
  parallelToolCalls: flag,
  toolChoice: oneOf('auto', 'none', 'required'),
  requiredSchema: schema,
  output: schema,
  variables: readList(variable),
  tools: readList(promptTool),
  env: textRecord,
  reasoning: readFields<ReasoningOptions>({
    effort: oneOf('low', 'medium', 'high'),
    exclude: flag,
  }),
  recentImageThreshold: (value, place) => (value === 0 ? 0 : count(value, place)),
  providerOptions: settings,
  hooks: readList(reference<HookDefinition>('hook')),
  compaction: readFields<CompactionOptions>({
    maxTokens: count,
    keepMessages: count,
    enabled: flag,
  }),
}

/** Reads a prompt. */
export const readPrompt: Reader<ReadPrompt> = readFields(
  promptFields,
  ['kind', 'name', 'prompt', 'model'],
  {
    renamed: {
      instructions: 'write prompt, or instructions in defineAgent',
      system: 'write prompt',
      systemPrompt: 'write prompt',
      structure: 'write output',
      outputSchema: 'write output',
      params: 'write providerOptions',
      temperature: 'write providerOptions: { temperature }',
    },
  },
)

/** Accepts any name, because the name was already checked. */
const anyName: Reader<never> = (value) => value as never

/** Reads a tool with settings for this prompt. */
export const readToolConfig: Reader<PromptToolConfig> = readFields<PromptToolConfig>({
  name: anyName,
  env: textRecord,
  options: plainObject,
})

const immediate = readFields<ImmediateOptions>({
  nameEnv: word,
  descriptionEnv: word,
  scopedEnv: readList(word) as Reader<readonly string[]>, // invalid items are already reported
})

const side = oneOf('side_a', 'side_b')

const resumable = readFields<ResumableOptions>({
  receives_messages: side,
  receivesMessages: side,
  maxInstances: count,
  parentCommunication: oneOf('implicit', 'explicit'),
})

const subagentFields: Fields<Omit<SubagentToolConfig, 'name'>> = {
  blocking: flag,
  initUserMessageProperty: word,
  initAttachmentsProperty: word,
  initAgentNameProperty: word,
  immediate: (value, place) => (typeof value === 'boolean' ? value : immediate(value, place)),
  optional: word,
  resumable: (value, place) => {
    if (value === false) return false
    if (value === true) return report(place, 'must be false or an object; {} takes the defaults')
    return resumable(value, place)
  },
}

/** Reads a subagent with its settings. */
export const readSubagentConfig: Reader<SubagentToolConfig> = readFields<SubagentToolConfig>({
  name: anyName,
  ...subagentFields,
})

const sideSubagent = readFields<SideSubagent>(
  {
    agent: anyName,
    as: word,
    description: word,
    hidden: flag,
    scopedEnv: readList(word) as Reader<readonly string[]>, // invalid items are already reported
    ...subagentFields,
  },
  ['agent'],
)

/** Reads a subagent of a side: an agent, its name, or either with settings. */
export const readSideSubagent: Reader<SideSubagent> = (value, place) => {
  const isPlain = typeof value === 'string' || (isPlainObject(value) && isAgentLike(value))
  if (isPlain) return { agent: value as SideSubagent['agent'] }
  if (!isPlainObject(value))
    return report(place, `must be an agent, its name or { agent, … }, not ${kindOf(value)}`)
  const { agent } = value
  const isAgent =
    agent === undefined || typeof agent === 'string' || (isPlainObject(agent) && isAgentLike(agent))
  if (!isAgent) report(at(place, 'agent'), `must be an agent or its name, not ${kindOf(agent)}`)
  return isAgent ? sideSubagent(value, place) : undefined
}

/** Reads a prompt as a tool with its settings. */
export const readSubpromptConfig: Reader<SubpromptConfig> = readFields<SubpromptConfig>({
  name: anyName,
  initUserMessageProperty: word,
  initAttachmentsProperty: word,
  includeTextResponse: flag,
  includeErrors: flag,
  includeToolCalls: flag,
})
