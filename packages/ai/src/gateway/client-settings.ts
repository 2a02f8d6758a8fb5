import type { JsonObject, JsonValue } from '@skein/base'
import type { Params, Settings, ToolChoice, WireName } from '../contract/provider.ts'
import { isEmpty, listOf, numberOf, objectOf, textOf } from '../wires/read-json.ts'
import { requestError } from '../wires/wire-error.ts'

/** Settings that are still being filled from the client's parameters, so they are not readonly. */
type GivenSettings = { -readonly [Name in keyof Settings]: Settings[Name] }

/** The parameters of a client, as settings that every model understands. */
export interface ClientSettings {
  readonly settings: Settings
  /** Names of the parameters that no setting corresponds to. */
  readonly unknown: readonly string[]
  /** The client's name for each setting, e.g. `max_tokens` for `maxOutputTokens`. */
  readonly nameOf: ReadonlyMap<keyof Settings, string>
}

/**
 * Reads a client's parameters as settings. Throws for parameters that continue a conversation stored at a vendor,
 * because another model would answer without knowing that conversation.
 */
export function readClientSettings(params: Params, from: WireName): ClientSettings {
  const fields = params as JsonObject // the params are from a parsed JSON body
  for (const name of statefulNames[from] ?? []) {
    if (fields[name] === undefined) continue
    throw requestError(
      'gateway',
      `The field "${name}" refers to a state that this model does not have.`,
      'Send the whole conversation in "input".',
    )
  }
  const settings: GivenSettings = {}
  const unknown: string[] = []
  const nameOf = new Map<keyof Settings, string>()
  // Anthropic's `thinking` says more than its effort, so it is read last.
  const isLast = (name: string): number => Number(name === 'thinking')
  const entries = Object.entries(fields).toSorted(([a], [b]) => isLast(a) - isLast(b))
  for (const [name, value] of entries) {
    if (value === undefined) continue
    const before = new Set(Object.keys(settings))
    if (!readers[from]?.(name, value, settings)) unknown.push(name)
    for (const setting of Object.keys(settings) as (keyof Settings)[])
      if (!before.has(setting)) nameOf.set(setting, name)
  }
  return { settings, unknown, nameOf }
}

/** The parameters of each format that continue a conversation or an answer stored at its vendor. */
const statefulNames: Partial<Record<WireName, readonly string[]>> = {
  'openai-responses': ['previous_response_id', 'conversation', 'prompt'],
  'google-interactions': ['previous_interaction_id', 'continuation_token', 'environment'],
}

/** Returns the client's names of the parameters without an effect, in the order in which the client gave them. */
export function droppedNames(
  params: Params,
  { unknown, nameOf }: ClientSettings,
  dropped: readonly (keyof Settings)[],
): readonly string[] {
  const lostNames = new Set(dropped.map((setting) => nameOf.get(setting) ?? setting))
  return Object.keys(params).filter((name) => unknown.includes(name) || lostNames.has(name))
}

/** Reads a parameter into the settings; returns false if no setting corresponds to it. */
type Reader = (name: string, value: JsonValue, settings: GivenSettings) => boolean

/** The parameter reader of each vendor format. Only the formats that the gateway serves have one. */
const readers: Partial<Record<WireName, Reader>> = {
  'openai-chat': readOpenAI,
  'openai-responses': readOpenAI,
  'anthropic-messages': readAnthropic,
  'google-generate': readGoogle,
  'google-interactions': readInteractions,
}

function readOpenAI(name: string, value: JsonValue, settings: GivenSettings): boolean {
  switch (name) {
    case 'max_tokens':
    case 'max_completion_tokens':
    case 'max_output_tokens':
      return keep(settings, 'maxOutputTokens', numberOf(value))
    case 'temperature':
      return keep(settings, 'temperature', numberOf(value))
    case 'top_p':
      return keep(settings, 'topP', numberOf(value))
    case 'top_k': // not OpenAI's own, but clients of its format send it to other vendors
      return keep(settings, 'topK', numberOf(value))
    case 'seed':
      return keep(settings, 'seed', numberOf(value))
    case 'stop':
      return keep(settings, 'stop', typeof value === 'string' ? [value] : textsOf(value))
    case 'reasoning_effort':
      return keep(settings, 'reasoning', levelOf(value))
    case 'reasoning':
      return keep(settings, 'reasoning', levelOf(objectOf(value)?.['effort']))
    case 'parallel_tool_calls':
      return keep(
        settings,
        'parallelToolCalls',
        value === true || value === false ? value : undefined,
      )
    case 'tool_choice':
      return keep(settings, 'toolChoice', openaiChoice(value))
    default:
      return false
  }
}

function readAnthropic(name: string, value: JsonValue, settings: GivenSettings): boolean {
  switch (name) {
    case 'max_tokens':
      return keep(settings, 'maxOutputTokens', numberOf(value))
    case 'temperature':
      return keep(settings, 'temperature', numberOf(value))
    case 'top_p':
      return keep(settings, 'topP', numberOf(value))
    case 'top_k':
      return keep(settings, 'topK', numberOf(value))
    case 'stop_sequences':
      return keep(settings, 'stop', textsOf(value))
    case 'output_config':
      return keep(settings, 'reasoning', levelOf(objectOf(value)?.['effort']))
    case 'thinking':
      return keepThinking(settings, objectOf(value) ?? {})
    case 'tool_choice': {
      const choice = objectOf(value) ?? {}
      if (choice['disable_parallel_tool_use'] === true) settings.parallelToolCalls = false
      return keep(settings, 'toolChoice', anthropicChoice(choice))
    }
    default:
      return false
  }
}

/** Reads Anthropic's `thinking`. A budget says more than an effort, which may be given too. */
function keepThinking(settings: GivenSettings, thinking: JsonObject): boolean {
  switch (thinking['type']) {
    case 'disabled':
      return keep(settings, 'reasoning', 'off')
    case 'enabled': {
      const budget = numberOf(thinking['budget_tokens'])
      return keep(settings, 'reasoning', budget === undefined ? undefined : { budget })
    }
    case 'adaptive':
      // The model decides, which is what other models do unless an effort says how much.
      return settings.reasoning !== undefined || keep(settings, 'reasoning', 'medium')
    default:
      return false
  }
}

function readGoogle(name: string, value: JsonValue, settings: GivenSettings): boolean {
  const fields = objectOf(value) ?? {}
  if (name === 'toolConfig') {
    const { mode, allowedFunctionNames } = objectOf(fields['functionCallingConfig']) ?? {}
    const [only, ...others] = textsOf(allowedFunctionNames ?? null) ?? []
    const choice = only !== undefined && others.length === 0 ? { tool: only } : 'required'
    const choices = { AUTO: 'auto', NONE: 'none', ANY: choice, VALIDATED: 'auto' } as const
    return keep(settings, 'toolChoice', choices[mode as keyof typeof choices])
  }
  if (name !== 'generationConfig') return false
  const readNames: Readonly<Record<string, () => boolean>> = {
    maxOutputTokens: () => keep(settings, 'maxOutputTokens', numberOf(fields['maxOutputTokens'])),
    temperature: () => keep(settings, 'temperature', numberOf(fields['temperature'])),
    topP: () => keep(settings, 'topP', numberOf(fields['topP'])),
    topK: () => keep(settings, 'topK', numberOf(fields['topK'])),
    seed: () => keep(settings, 'seed', numberOf(fields['seed'])),
    stopSequences: () => keep(settings, 'stop', textsOf(fields['stopSequences'] ?? null)),
    thinkingConfig: () => keep(settings, 'reasoning', googleReasoning(fields['thinkingConfig'])),
  }
  // Every field is read, also after one that has no setting.
  return Object.keys(fields).filter((field) => !readNames[field]?.()).length === 0 && !isEmpty(fields) // prettier-ignore
}

function readInteractions(name: string, value: JsonValue, settings: GivenSettings): boolean {
  const fields = objectOf(value) ?? {}
  if (name !== 'generation_config') return false
  const readNames: Readonly<Record<string, () => boolean>> = {
    max_output_tokens: () => keep(settings, 'maxOutputTokens', numberOf(fields['max_output_tokens'])), // prettier-ignore
    temperature: () => keep(settings, 'temperature', numberOf(fields['temperature'])),
    top_p: () => keep(settings, 'topP', numberOf(fields['top_p'])),
    seed: () => keep(settings, 'seed', numberOf(fields['seed'])),
    stop_sequences: () => keep(settings, 'stop', textsOf(fields['stop_sequences'] ?? null)),
    thinking_level: () => keep(settings, 'reasoning', levelOf(fields['thinking_level'])),
    tool_choice: () => keep(settings, 'toolChoice', interactionsChoice(fields['tool_choice'])),
  }
  // Every field is read, also after one that has no setting.
  return Object.keys(fields).filter((field) => !readNames[field]?.()).length === 0 && !isEmpty(fields) // prettier-ignore
}

function interactionsChoice(value: JsonValue | undefined): ToolChoice | undefined {
  if (value === 'auto' || value === 'none') return value
  if (value === 'any') return 'required'
  if (value === 'validated') return 'auto'
  const { mode, tools } = objectOf(objectOf(value)?.['allowed_tools']) ?? {}
  const [only, ...others] = textsOf(tools ?? null) ?? []
  if (mode !== 'any') return mode === undefined ? undefined : 'auto'
  return only !== undefined && others.length === 0 ? { tool: only } : 'required'
}

function googleReasoning(value: JsonValue | undefined): Settings['reasoning'] {
  const { thinkingLevel, thinkingBudget } = objectOf(value) ?? {}
  const level = textOf(thinkingLevel)?.toLowerCase()
  if (level !== undefined) return levelOf(level)
  const budget = numberOf(thinkingBudget)
  if (budget === undefined || budget < 0) return undefined // -1 lets the model decide
  return budget === 0 ? 'off' : { budget }
}

function keep<Name extends keyof GivenSettings>(
  settings: GivenSettings,
  name: Name,
  value: GivenSettings[Name] | undefined,
): boolean {
  if (value === undefined) return false
  settings[name] = value
  return true
}

function textsOf(value: JsonValue): readonly string[] | undefined {
  const texts = listOf(value).filter((item) => typeof item === 'string')
  return texts.length > 0 ? texts : undefined
}

/** Returns the nearest of the levels that every vendor supports; undefined for a word that is none. */
function levelOf(value: JsonValue | undefined): 'off' | 'low' | 'medium' | 'high' | undefined {
  return typeof value === 'string' ? levels.get(value) : undefined
}

const levels = new Map([
  ['none', 'off'],
  ['minimal', 'low'],
  ['low', 'low'],
  ['medium', 'medium'],
  ['high', 'high'],
  ['xhigh', 'high'],
  ['max', 'high'],
] as const) as ReadonlyMap<string, 'off' | 'low' | 'medium' | 'high'>

function openaiChoice(value: JsonValue): ToolChoice | undefined {
  if (value === 'auto' || value === 'none' || value === 'required') return value
  const choice = objectOf(value)
  const name = textOf(objectOf(choice?.['function'])?.['name']) ?? textOf(choice?.['name'])
  return name === undefined ? undefined : { tool: name }
}

function anthropicChoice(choice: JsonObject): ToolChoice | undefined {
  const name = textOf(choice['name'])
  switch (choice['type']) {
    case 'auto':
    case 'none':
      return choice['type']
    case 'any':
      return 'required'
    case 'tool':
      return name === undefined ? undefined : { tool: name }
    default:
      return undefined
  }
}
