import type { JsonObject } from '@skein/base'
import type { Params, Settings } from '../../contract/provider.ts'
import { chooseBudget, chooseEffort, noReasoning } from '../reasoning.ts'
import { numberOf, objectOf } from '../read-json.ts'
import { acceptedOnly, stopsOf, writtenSettings, type SettingsContext } from '../settings.ts'
import type { SettingNote, WireSettings, WrittenSettings } from '../wire.ts'
import type { AnthropicDialect } from './types.ts'

/** Writes settings for Anthropic, which has no `seed`. */
export function writeAnthropic(
  given: WireSettings,
  {
    dialect,
    modelId = '',
  }: { readonly dialect?: Pick<AnthropicDialect, 'accepts'>; readonly modelId?: string } = {},
  params: Params = {},
): WrittenSettings {
  const accepts = dialect?.accepts?.(modelId)
  const thinking = writeThinking(given, { modelId, accepts, params })
  const type =
    objectOf(params['thinking'])?.['type'] ?? objectOf(thinking.fields?.['thinking'])?.['type']
  const isThinking = type === undefined ? accepts?.thinksByDefault === true : type !== 'disabled'
  // The default of `temperature` is 1, so where sampling is refused, 1 says nothing and is left out.
  const isDefault = given.temperature === 1 && isThinking && accepts?.sampling !== 'accepted'
  const { settings, notes } = acceptedOnly(
    isDefault ? { ...given, temperature: undefined } : given,
    { modelId, accepts },
    isThinking,
  )
  return writtenSettings(given, {
    params: {
      max_tokens: settings.maxOutputTokens,
      temperature: settings.temperature,
      top_p: settings.topP,
      top_k: settings.topK,
      stop_sequences: stopsOf(settings),
      ...thinking.fields,
      tool_choice: anthropicChoice(settings),
    },
    absent: { seed: given.seed },
    notes: [...notes, ...thinking.notes],
  })
}

interface WrittenThinking {
  readonly fields?: JsonObject
  readonly notes: readonly SettingNote[]
}

/** Writes `reasoning` as the model accepts it: tokens, a word, or both. */
function writeThinking(
  { reasoning, maxOutputTokens, toolChoice }: WireSettings,
  { modelId, accepts, params }: SettingsContext,
): WrittenThinking {
  if (reasoning === undefined) return { notes: [] }
  if (!accepts) return { fields: unknownThinking(reasoning), notes: [] }
  const { reasoning: accepted } = accepts
  const choice = objectOf(params['tool_choice'])?.['type']
  const isForced =
    toolChoice === 'required' ||
    typeof toolChoice === 'object' ||
    choice === 'any' ||
    choice === 'tool'
  if (accepts.forcedTools === 'without_reasoning' && isForced && reasoning !== 'off') {
    const reason = `${modelId} does not think while a call is forced; it was not sent.`
    return { notes: [{ setting: 'reasoning', change: 'dropped', reason }] }
  }
  const limit = numberOf(params['max_tokens']) ?? maxOutputTokens ?? Infinity
  switch (accepted.by) {
    case 'budget': {
      const { value, notes } = chooseBudget(reasoning, { ...accepted, limit: limit - 1, modelId })
      const effort =
        accepted.withEffort && value && typeof reasoning === 'string'
          ? { output_config: { effort: reasoning } }
          : {}
      return value === undefined
        ? { notes }
        : { fields: { ...thinkingOf(value), ...effort }, notes }
    }
    case 'adaptive': {
      if (typeof reasoning === 'object' && reasoning.budget > 0 && accepted.takesBudget) {
        const range = { min: 1024, max: accepts.maxOutputTokens ?? Infinity, canStop: true }
        const { value, notes } = chooseBudget(reasoning, { ...range, limit: limit - 1, modelId })
        return value === undefined ? { notes } : { fields: thinkingOf(value), notes }
      }
      const isOff = reasoning === 'off' || (typeof reasoning === 'object' && reasoning.budget === 0)
      if (isOff && accepted.off !== 'never') return switchedOff(accepted.off, modelId)
      const { value, notes } = chooseEffort(reasoning, accepted.efforts, modelId)
      if (value === undefined) return { notes }
      return { fields: { thinking: { type: 'adaptive' }, output_config: { effort: value } }, notes }
    }
    case 'effort':
    case 'nothing':
      // A model that does not think does what `off` asks.
      return { notes: reasoning === 'off' ? [] : noReasoning(modelId) }
    default:
      return accepted satisfies never
  }
}

function switchedOff(
  off: 'disabled' | 'absent' | 'between_tools',
  modelId: string,
): WrittenThinking {
  if (off === 'absent') return { notes: [] }
  const fields = { thinking: { type: off } }
  if (off === 'disabled') return { fields, notes: [] }
  const reason = `${modelId} always thinks; "between_tools", the least it accepts, was sent.`
  return { fields, notes: [{ setting: 'reasoning', change: 'adjusted', reason }] }
}

function thinkingOf(budget: number): JsonObject {
  return {
    thinking: budget === 0 ? { type: 'disabled' } : { type: 'enabled', budget_tokens: budget },
  }
}

/** Writes `reasoning` for a server of which nothing is known: as the current models of Anthropic take it. */
function unknownThinking(reasoning: NonNullable<Settings['reasoning']>): JsonObject {
  if (typeof reasoning === 'object') return thinkingOf(reasoning.budget)
  if (reasoning === 'off') return thinkingOf(0)
  return { thinking: { type: 'adaptive' }, output_config: { effort: reasoning } }
}

function anthropicChoice({ toolChoice, parallelToolCalls }: WireSettings): JsonObject | undefined {
  const alone = parallelToolCalls === false ? { disable_parallel_tool_use: true } : {}
  if (!toolChoice) return parallelToolCalls === false ? { type: 'auto', ...alone } : undefined
  if (toolChoice === 'none') return { type: 'none' }
  if (typeof toolChoice === 'object') return { type: 'tool', name: toolChoice.tool, ...alone }
  return { type: toolChoice === 'required' ? 'any' : 'auto', ...alone }
}
