import { isPlainObject, type JsonObject, type JsonValue } from '@skein/base'
import type { LLMRequest, Settings, ToolChoice } from '../contract/provider.ts'
import type { Warning } from '../contract/turn.ts'
import type { OpenAIChatDialect } from './openai-chat/types.ts'
import type { Target, Wire, WireSettings, WrittenSettings } from './wire.ts'

/**
 * Returns a request whose settings are written as parameters of the vendor format, and a warning for each
 * setting that the format lacks. Parameters that the caller gave take precedence, also inside of objects such
 * as `generationConfig`.
 */
export function withSettings(
  request: LLMRequest,
  wire: Wire,
  target: Target,
): { readonly request: LLMRequest; readonly warnings: readonly Warning[] } {
  const { settings } = request
  if (!settings) return { request, warnings: [] }
  const { params, dropped } = wire.writeSettings?.(settings, target) ?? {
    params: {},
    dropped: Object.keys(settings) as (keyof Settings)[],
  }
  const merged: Record<string, unknown> = { ...params, ...request.params }
  // Chat Completions has two names for the output limit, and OpenAI refuses a request with both.
  if (limitNames.some((name) => name in request.params))
    for (const name of limitNames) if (!(name in request.params)) delete merged[name]
  for (const [name, own] of Object.entries(params)) {
    const given = request.params[name]
    if (isPlainObject(own) && isPlainObject(given)) merged[name] = { ...own, ...given }
  }
  return {
    request: { ...request, params: merged },
    warnings: dropped.map((name) => ({
      code: 'setting_dropped',
      message: `${target.provider} has no ${name} ${JSON.stringify(settings[name as keyof Settings])}; it was not sent.`,
      pointer: `/settings/${name}`,
    })),
  }
}

const limitNames = ['max_tokens', 'max_completion_tokens'] as const

/** Parameters of Chat Completions that vendors name differently. */
export interface ChatParameters {
  readonly maxTokens: 'max_tokens' | 'max_completion_tokens'
  readonly seed: 'seed' | 'random_seed'
  /**
   * `effort`: `reasoning_effort`; `object`: OpenRouter's `reasoning`; `thinking`: on or off, without levels;
   * `none`: the vendor has no such parameter.
   */
  readonly reasoning: 'effort' | 'object' | 'thinking' | 'none'
}

/** The names that OpenAI gives the parameters of Chat Completions. */
export const openaiParameters: ChatParameters = {
  maxTokens: 'max_completion_tokens',
  seed: 'seed',
  reasoning: 'effort',
}

/** Writes settings for Chat Completions. */
export function writeChat(
  settings: WireSettings,
  { dialect }: { readonly dialect: Pick<OpenAIChatDialect, 'parameters'> },
): WrittenSettings {
  const { temperature, topP, topK, reasoning } = settings
  const names = dialect.parameters
  const thinking = chatReasoning(reasoning, names.reasoning)
  return written(settings, {
    params: {
      [names.maxTokens]: settings.maxOutputTokens,
      temperature,
      top_p: topP,
      stop: stopsOf(settings),
      [names.seed]: settings.seed,
      ...thinking,
      parallel_tool_calls: settings.parallelToolCalls,
      tool_choice: openaiChoice(settings.toolChoice, (name) => ({ function: { name } })),
    },
    absent: { topK, reasoning: thinking ? undefined : reasoning },
  })
}

function chatReasoning(
  reasoning: Settings['reasoning'],
  kind: ChatParameters['reasoning'],
): JsonObject | undefined {
  if (reasoning === undefined) return {}
  const budget = typeof reasoning === 'object' ? reasoning.budget : undefined
  switch (kind) {
    case 'effort':
      return budget === undefined ? { reasoning_effort: effortOf(reasoning) } : undefined
    case 'object':
      if (budget !== undefined) return { reasoning: { max_tokens: budget } }
      return { reasoning: { effort: effortOf(reasoning) } }
    case 'thinking':
      return { thinking: { type: reasoning === 'off' ? 'disabled' : 'enabled' } }
    case 'none':
      return undefined
    default:
      return kind satisfies never
  }
}

/** OpenAI's word for a level; `off` is `none`. */
function effortOf(reasoning: Settings['reasoning']): string | undefined {
  return reasoning === 'off' ? 'none' : typeof reasoning === 'string' ? reasoning : undefined
}

/** Writes settings for Responses, which has neither `stop` nor `seed`. */
export function writeResponses(settings: WireSettings): WrittenSettings {
  const { temperature, topP, topK, seed, reasoning } = settings
  const effort = effortOf(reasoning)
  return written(settings, {
    params: {
      max_output_tokens: settings.maxOutputTokens,
      temperature,
      top_p: topP,
      reasoning: effort === undefined ? undefined : { effort },
      parallel_tool_calls: settings.parallelToolCalls,
      tool_choice: openaiChoice(settings.toolChoice, (name) => ({ name })),
    },
    absent: { topK, seed, stop: stopsOf(settings), reasoning: effort ? undefined : reasoning },
  })
}

/** Writes settings for Anthropic, which has no `seed`. */
export function writeAnthropic(settings: WireSettings): WrittenSettings {
  const { temperature, topP, topK, seed, reasoning } = settings
  const isLevel = typeof reasoning === 'string' && reasoning !== 'off'
  return written(settings, {
    params: {
      max_tokens: settings.maxOutputTokens,
      temperature,
      top_p: topP,
      top_k: topK,
      stop_sequences: stopsOf(settings),
      output_config: isLevel ? { effort: reasoning } : undefined,
      thinking: anthropicThinking(reasoning),
      tool_choice: anthropicChoice(settings),
    },
    absent: { seed },
  })
}

function anthropicThinking(reasoning: Settings['reasoning']): JsonObject | undefined {
  if (reasoning === 'off') return { type: 'disabled' }
  if (typeof reasoning !== 'object') return undefined
  return { type: 'enabled', budget_tokens: reasoning.budget }
}

/**
 * Writes settings for Google. Gemini 2 has thinking budgets; later models have levels, and their thinking
 * cannot be switched off.
 */
export function writeGoogle(
  settings: WireSettings,
  { modelId }: Pick<Target, 'modelId'>,
): WrittenSettings {
  const { temperature, topP, topK, seed, reasoning, toolChoice, parallelToolCalls } = settings
  const isOld = /gemini-[12]\b/.test(modelId)
  const thinkingConfig = googleThinking(reasoning, isOld)
  return written(settings, {
    params: {
      generationConfig: notEmpty({
        maxOutputTokens: settings.maxOutputTokens,
        temperature,
        topP,
        topK,
        stopSequences: stopsOf(settings),
        seed,
        thinkingConfig,
      }),
      toolConfig: toolChoice && {
        functionCallingConfig: notEmpty({
          mode: typeof toolChoice === 'string' ? googleModes[toolChoice] : 'ANY',
          allowedFunctionNames: typeof toolChoice === 'string' ? undefined : [toolChoice.tool],
        }),
      },
    },
    absent: { parallelToolCalls, reasoning: thinkingConfig ? undefined : reasoning },
  })
}

const googleModes = { auto: 'AUTO', none: 'NONE', required: 'ANY' } as const
/** Tokens of thinking for each level, within the range of every Gemini 2.5 model. */
const googleBudgets = { off: 0, low: 1024, medium: 8192, high: 24_576 } as const

function googleThinking(reasoning: Settings['reasoning'], isOld: boolean): JsonObject | undefined {
  if (reasoning === undefined) return undefined
  if (typeof reasoning === 'object') return { thinkingBudget: reasoning.budget }
  if (isOld) return { thinkingBudget: googleBudgets[reasoning] }
  return reasoning === 'off' ? undefined : { thinkingLevel: reasoning }
}

/** Writes settings for Ollama, which cannot be told which tool to call. */
export function writeOllama(settings: WireSettings): WrittenSettings {
  const { temperature, topP, topK, seed, reasoning, toolChoice, parallelToolCalls } = settings
  const isBudget = typeof reasoning === 'object'
  return written(settings, {
    params: {
      think: isBudget ? undefined : reasoning === 'off' ? false : reasoning,
      options: notEmpty({
        num_predict: settings.maxOutputTokens,
        temperature,
        top_p: topP,
        top_k: topK,
        stop: stopsOf(settings),
        seed,
      }),
    },
    absent: { toolChoice, parallelToolCalls, reasoning: isBudget ? reasoning : undefined },
  })
}

/** Leaves out parameters that are undefined; the settings that have a value in `absent` are reported as dropped. */
function written(
  settings: WireSettings,
  {
    params,
    absent,
  }: {
    readonly params: Readonly<Record<string, JsonValue | undefined>>
    readonly absent: Partial<Record<keyof WireSettings, unknown>>
  },
): WrittenSettings {
  const names = Object.keys(settings) as (keyof WireSettings)[]
  return {
    params: notEmpty(params) ?? {},
    dropped: names.filter((name) => absent[name] !== undefined),
  }
}

function stopsOf({ stop }: Settings): readonly string[] | undefined {
  return typeof stop === 'string' ? [stop] : stop
}

function openaiChoice(
  choice: ToolChoice | undefined,
  named: (name: string) => JsonObject,
): JsonValue | undefined {
  return typeof choice === 'object' ? { type: 'function', ...named(choice.tool) } : choice
}

function anthropicChoice({ toolChoice, parallelToolCalls }: WireSettings): JsonObject | undefined {
  const alone = parallelToolCalls === false ? { disable_parallel_tool_use: true } : {}
  if (!toolChoice) return parallelToolCalls === false ? { type: 'auto', ...alone } : undefined
  if (toolChoice === 'none') return { type: 'none' }
  if (typeof toolChoice === 'object') return { type: 'tool', name: toolChoice.tool, ...alone }
  return { type: toolChoice === 'required' ? 'any' : 'auto', ...alone }
}

function notEmpty(fields: Readonly<Record<string, JsonValue | undefined>>): JsonObject | undefined {
  const given = Object.entries(fields).filter(([, value]) => value !== undefined)
  return given.length > 0 ? Object.fromEntries(given) : undefined
}
