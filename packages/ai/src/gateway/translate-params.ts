import type { JsonObject, JsonValue } from '@skein/base'
import type { Params, ToolChoice, WireName } from '../contract/provider.ts'
import { listOf, numberOf, objectOf, textOf } from '../wires/read-json.ts'
import {
  openaiParameters,
  writeAnthropic,
  writeChat,
  writeGoogle,
  writeOllama,
  writeResponses,
} from '../wires/settings.ts'
import { requestError } from '../wires/wire-error.ts'
import type { WireSettings, WrittenSettings } from '../wires/wire.ts'

/** Settings that are still being filled from the client's parameters, so they are not readonly. */
type GivenSettings = { -readonly [Name in keyof WireSettings]: WireSettings[Name] }

/** The result of `translateParams`. */
type TranslatedParams = {
  readonly params: Params
  /** Names of parameters that have no equivalent in the model's vendor format. */
  readonly dropped: readonly string[]
}

/**
 * Translates parameters from the client's vendor format to the model's. They are passed unchanged if both
 * formats are the same or the model's format is unknown.
 */
export function translateParams(
  params: Params,
  from: WireName,
  to: WireName | undefined,
): TranslatedParams {
  if (to === undefined || to === from) return { params, dropped: [] }
  const given = params as JsonObject // the params are from a parsed JSON body
  // Rejects parameters that continue a conversation stored at a vendor, because the model would answer
  // without knowing that conversation.
  for (const name of ['previous_response_id', 'conversation', 'prompt']) {
    if (from !== 'openai-responses' || given[name] === undefined) continue
    throw requestError(
      'gateway',
      `The field "${name}" refers to a state that this model does not have.`,
      'Send the whole conversation in "input".',
    )
  }
  const settings: GivenSettings = {}
  const unknown: string[] = []
  const nameOf = new Map<string, string>()
  for (const [name, value] of Object.entries(given)) {
    if (value === undefined) continue
    const before = new Set(Object.keys(settings))
    if (!readers[from]?.(name, value, settings)) unknown.push(name)
    for (const setting of Object.keys(settings)) if (!before.has(setting)) nameOf.set(setting, name)
  }
  const { params: written, dropped } = writers[to](settings)
  const lost = new Set(dropped.map((setting) => nameOf.get(setting) ?? setting))
  // The dropped names are listed in the order of the client's parameters.
  const names = Object.keys(given).filter((name) => unknown.includes(name) || lost.has(name))
  return { params: written, dropped: names }
}

/** Reads a parameter into the settings; returns false if no setting corresponds to it. */
type Reader = (name: string, value: JsonValue, settings: GivenSettings) => boolean

/** The parameter reader of each vendor format. Only the formats that the gateway serves have one. */
const readers: Partial<Record<WireName, Reader>> = {
  'openai-chat': readOpenAI,
  'openai-responses': readOpenAI,
  'anthropic-messages': readAnthropic,
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
    case 'tool_choice': {
      const choice = objectOf(value) ?? {}
      if (choice['disable_parallel_tool_use'] === true) settings.parallelToolCalls = false
      return keep(settings, 'toolChoice', anthropicChoice(choice))
    }
    default:
      return false
  }
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

/** Returns the value if it is one of the three effort levels that every vendor supports. */
function levelOf(value: JsonValue | undefined): 'low' | 'medium' | 'high' | undefined {
  return value === 'low' || value === 'medium' || value === 'high' ? value : undefined
}

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

/**
 * The parameter writer of each vendor format. For Chat Completions it writes OpenAI's parameters, because it
 * is not known here which of the many vendors with that format answers.
 */
const writers: Readonly<Record<WireName, (settings: WireSettings) => WrittenSettings>> = {
  'openai-chat': (settings) => writeChat(settings, { dialect: { parameters: openaiParameters } }),
  'openai-responses': writeResponses,
  'anthropic-messages': writeAnthropic,
  'google-generate': (settings) => writeGoogle(settings, { modelId: '' }),
  'ollama-chat': writeOllama,
}
