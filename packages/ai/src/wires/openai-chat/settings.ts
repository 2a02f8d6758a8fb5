import type { JsonObject } from '@skein/base'
import type { AcceptedSettings } from '../../contract/accepted-settings.ts'
import type { Params, Settings } from '../../contract/provider.ts'
import { chooseEffort, noReasoning } from '../reasoning.ts'
import { stopsOf, writtenSettings } from '../settings.ts'
import { openaiChoice } from '../openai-choice.ts'
import { acceptedOnly } from '../accepted-only.ts'
import type { SettingNote, WireSettings, WrittenSettings } from '../wire.ts'
import type { OpenAIChatDialect } from './dialect.ts'

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
  given: WireSettings,
  {
    dialect,
    modelId = '',
  }: {
    readonly dialect: Pick<OpenAIChatDialect, 'parameters' | 'accepts'>
    readonly modelId?: string
  },
  params: Params = {},
): WrittenSettings {
  const names = dialect.parameters
  const accepts = dialect.accepts?.(modelId)
  const { reasoning } = given
  const thinking = chatReasoning(reasoning, names.reasoning, { accepts, modelId })
  const effort = params['reasoning_effort'] ?? thinking.fields?.['reasoning_effort']
  const isThinking = effort === undefined ? accepts?.thinksByDefault === true : effort !== 'none'
  const { settings, notes } = acceptedOnly(given, { modelId, accepts }, isThinking)
  return writtenSettings(given, {
    params: {
      [names.maxTokens]: settings.maxOutputTokens,
      temperature: settings.temperature,
      top_p: settings.topP,
      stop: stopsOf(settings),
      [names.seed]: settings.seed,
      ...thinking.fields,
      parallel_tool_calls: settings.parallelToolCalls,
      tool_choice: openaiChoice(settings.toolChoice, (name) => ({ function: { name } })),
    },
    absent: { topK: settings.topK, reasoning: thinking.fields ? undefined : reasoning },
    notes: [...notes, ...(thinking.notes ?? [])],
  })
}

interface ChatReasoning {
  /** Undefined if the setting cannot be written. */
  readonly fields?: JsonObject | undefined
  readonly notes?: readonly SettingNote[]
}

function chatReasoning(
  reasoning: Settings['reasoning'],
  kind: ChatParameters['reasoning'],
  {
    accepts,
    modelId,
  }: { readonly accepts: AcceptedSettings | undefined; readonly modelId: string },
): ChatReasoning {
  if (reasoning === undefined) return { fields: {} }
  const budget = typeof reasoning === 'object' ? reasoning.budget : undefined
  const effort =
    reasoning === 'off' ? 'none' : typeof reasoning === 'string' ? reasoning : undefined
  switch (kind) {
    case 'effort': {
      if (accepts) return acceptedEffort(reasoning, accepts, modelId)
      return { fields: effort === undefined ? undefined : { reasoning_effort: effort } }
    }
    case 'object':
      if (budget !== undefined) return { fields: { reasoning: { max_tokens: budget } } }
      return { fields: { reasoning: { effort } } }
    case 'thinking':
      return { fields: { thinking: { type: reasoning === 'off' ? 'disabled' : 'enabled' } } }
    case 'none':
      return {}
    default:
      return kind satisfies never
  }
}

function acceptedEffort(
  reasoning: NonNullable<Settings['reasoning']>,
  { reasoning: accepted, thinksByDefault }: AcceptedSettings,
  modelId: string,
): ChatReasoning {
  if (accepted.by !== 'effort') {
    // A model that does not think does what `off` asks.
    const isFulfilled = reasoning === 'off' && !thinksByDefault
    return isFulfilled ? { fields: {} } : { notes: noReasoning(modelId) }
  }
  const { value, notes } = chooseEffort(reasoning, accepted.efforts, modelId)
  return { fields: value && { reasoning_effort: value }, notes }
}
