import type { JsonObject, JsonValue } from '@skein/base'
import type { Params } from '../contract/provider.ts'
import type { WireName } from '../contract/wire-name.ts'
import { listOf, numberOf, objectOf, textOf } from '../wires/read-json.ts'
import { requestError } from '../wires/wire-error.ts'

/** Settings that vendors share, each vendor under its own parameter names. */
interface Settings {
  maxTokens?: number
  temperature?: number
  topP?: number
  topK?: number
  stop?: readonly string[]
  seed?: number
  effort?: string
  toolChoice?: ToolChoice
  parallelToolCalls?: boolean
}

interface ToolChoice {
  readonly mode: 'auto' | 'none' | 'required'
  /** With `required`: the only tool that may be called. */
  readonly name?: string
}

/** The result of `translateParams`. */
export interface TranslatedParams {
  readonly params: Params
  /** Names of parameters that the model's wire cannot express. */
  readonly dropped: readonly string[]
}

/**
 * Translates parameters from the client's wire to the model's. They are passed unchanged if both wires
 * are the same or the model's wire is unknown.
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
  const settings: Settings = {}
  const dropped: string[] = []
  for (const [name, value] of Object.entries(given)) {
    if (value === undefined) continue
    const before = Object.keys(settings).length
    const isKnown = readers[from]?.(name, value, settings)
    const [setting] = Object.keys(settings).slice(before)
    if (!isKnown || unspoken[to].has(setting ?? '')) dropped.push(name)
  }
  return { params: writers[to](settings), dropped }
}

/** Settings that a wire cannot express. */
const unspoken: Readonly<Record<WireName, ReadonlySet<string>>> = {
  'openai-chat': new Set(['topK']),
  'openai-responses': new Set(['topK', 'stop', 'seed']),
  'anthropic-messages': new Set(['seed']),
  'google-generate': new Set(['parallelToolCalls']),
  'ollama-chat': new Set(['toolChoice', 'parallelToolCalls']),
}

/** Reads a parameter into the settings; returns false if no setting corresponds to it. */
type Reader = (name: string, value: JsonValue, settings: Settings) => boolean

/** The parameter reader of each wire. Only the wires that the gateway serves have one. */
const readers: Partial<Record<WireName, Reader>> = {
  'openai-chat': readOpenAI,
  'openai-responses': readOpenAI,
  'anthropic-messages': readAnthropic,
}

function readOpenAI(name: string, value: JsonValue, settings: Settings): boolean {
  switch (name) {
    case 'max_tokens':
    case 'max_completion_tokens':
    case 'max_output_tokens':
      return keep(settings, 'maxTokens', numberOf(value))
    case 'temperature':
      return keep(settings, 'temperature', numberOf(value))
    case 'top_p':
      return keep(settings, 'topP', numberOf(value))
    case 'seed':
      return keep(settings, 'seed', numberOf(value))
    case 'stop':
      return keep(settings, 'stop', typeof value === 'string' ? [value] : textsOf(value))
    case 'reasoning_effort':
      return keep(settings, 'effort', effortOf(value))
    case 'reasoning':
      return keep(settings, 'effort', effortOf(objectOf(value)?.['effort']))
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

function readAnthropic(name: string, value: JsonValue, settings: Settings): boolean {
  switch (name) {
    case 'max_tokens':
      return keep(settings, 'maxTokens', numberOf(value))
    case 'temperature':
      return keep(settings, 'temperature', numberOf(value))
    case 'top_p':
      return keep(settings, 'topP', numberOf(value))
    case 'top_k':
      return keep(settings, 'topK', numberOf(value))
    case 'stop_sequences':
      return keep(settings, 'stop', textsOf(value))
    case 'output_config':
      return keep(settings, 'effort', effortOf(objectOf(value)?.['effort']))
    case 'tool_choice': {
      const choice = objectOf(value) ?? {}
      if (choice['disable_parallel_tool_use'] === true) settings.parallelToolCalls = false
      return keep(settings, 'toolChoice', anthropicChoice(choice))
    }
    default:
      return false
  }
}

function keep<Name extends keyof Settings>(
  settings: Settings,
  name: Name,
  value: Settings[Name] | undefined,
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
function effortOf(value: JsonValue | undefined): string | undefined {
  return value === 'low' || value === 'medium' || value === 'high' ? value : undefined
}

function openaiChoice(value: JsonValue): ToolChoice | undefined {
  if (value === 'auto' || value === 'none' || value === 'required') return { mode: value }
  const choice = objectOf(value)
  const name = textOf(objectOf(choice?.['function'])?.['name']) ?? textOf(choice?.['name'])
  return name === undefined ? undefined : { mode: 'required', name }
}

function anthropicChoice(choice: JsonObject): ToolChoice | undefined {
  const name = textOf(choice['name'])
  switch (choice['type']) {
    case 'auto':
    case 'none':
      return { mode: choice['type'] }
    case 'any':
      return { mode: 'required' }
    case 'tool':
      return name === undefined ? undefined : { mode: 'required', name }
    default:
      return undefined
  }
}

type Writer = (settings: Settings) => JsonObject

const writers: Readonly<Record<WireName, Writer>> = {
  'openai-chat': ({ maxTokens, temperature, topP, stop, seed, effort, ...settings }) =>
    defined({
      max_completion_tokens: maxTokens,
      temperature,
      top_p: topP,
      stop,
      seed,
      reasoning_effort: effort,
      parallel_tool_calls: settings.parallelToolCalls,
      tool_choice: writeOpenAIChoice(settings.toolChoice, (name) => ({ function: { name } })),
    }),
  'openai-responses': ({ maxTokens, temperature, topP, effort, ...settings }) =>
    defined({
      max_output_tokens: maxTokens,
      temperature,
      top_p: topP,
      reasoning: effort === undefined ? undefined : { effort },
      parallel_tool_calls: settings.parallelToolCalls,
      tool_choice: writeOpenAIChoice(settings.toolChoice, (name) => ({ name })),
    }),
  'anthropic-messages': ({ maxTokens, temperature, topP, topK, stop, effort, ...settings }) =>
    defined({
      max_tokens: maxTokens,
      temperature,
      top_p: topP,
      top_k: topK,
      stop_sequences: stop,
      output_config: effort === undefined ? undefined : { effort },
      tool_choice: writeAnthropicChoice(settings),
    }),
  'google-generate': ({ maxTokens, temperature, topP, topK, stop, seed, effort, toolChoice }) =>
    defined({
      generationConfig: notEmpty({
        maxOutputTokens: maxTokens,
        temperature,
        topP,
        topK,
        stopSequences: stop,
        seed,
        thinkingConfig: effort === undefined ? undefined : { thinkingLevel: effort },
      }),
      toolConfig: toolChoice && {
        functionCallingConfig: defined({
          mode: googleModes[toolChoice.mode],
          allowedFunctionNames: toolChoice.name === undefined ? undefined : [toolChoice.name],
        }),
      },
    }),
  'ollama-chat': ({ maxTokens, temperature, topP, topK, stop, seed, effort }) =>
    defined({
      think: effort,
      options: notEmpty({
        num_predict: maxTokens,
        temperature,
        top_p: topP,
        top_k: topK,
        stop,
        seed,
      }),
    }),
}

const googleModes = { auto: 'AUTO', none: 'NONE', required: 'ANY' } as const

function writeOpenAIChoice(
  choice: ToolChoice | undefined,
  named: (name: string) => JsonObject,
): JsonValue | undefined {
  if (choice?.name === undefined) return choice?.mode
  return { type: 'function', ...named(choice.name) }
}

function writeAnthropicChoice(settings: Settings): JsonObject | undefined {
  const { toolChoice, parallelToolCalls } = settings
  const alone = parallelToolCalls === false ? { disable_parallel_tool_use: true } : {}
  if (!toolChoice) return parallelToolCalls === false ? { type: 'auto', ...alone } : undefined
  if (toolChoice.mode === 'none') return { type: 'none' }
  if (toolChoice.name !== undefined) return { type: 'tool', name: toolChoice.name, ...alone }
  return { type: toolChoice.mode === 'required' ? 'any' : 'auto', ...alone }
}

function defined(fields: Readonly<Record<string, JsonValue | undefined>>): JsonObject {
  const object: Record<string, JsonValue> = {}
  for (const [name, value] of Object.entries(fields)) if (value !== undefined) object[name] = value
  return object
}

function notEmpty(fields: Readonly<Record<string, JsonValue | undefined>>): JsonObject | undefined {
  const object = defined(fields)
  return Object.keys(object).length > 0 ? object : undefined
}
