import type { JsonObject } from '@skein/base'
import type { AssistantMessage, Message } from '../../contract/message.ts'
import type { Params, Settings } from '../../contract/provider.ts'
import { chooseBudget, chooseEffort, noReasoning } from '../reasoning.ts'
import { nativeOf } from '../metadata.ts'
import { numberOf, objectOf, textOf } from '../read-json.ts'
import { stopsOf, writtenSettings } from '../settings.ts'
import { acceptedOnly, type SettingsContext } from '../accepted-only.ts'
import type { SettingNote, Target, WireSettings, WrittenSettings } from '../wire.ts'
import { API, type AnthropicDialect } from './types.ts'

/** Writes settings for Anthropic, which has no `seed`. */
export function writeAnthropic(
  given: WireSettings,
  { dialect, modelId = '', provider = '' }: Partial<Target<Pick<AnthropicDialect, 'accepts'>>> = {},
  params: Params = {},
  messages: readonly Message[] = [],
): WrittenSettings {
  const accepts = dialect?.accepts?.(modelId)
  const thinking = withoutMidLoop(
    writeThinking(given, { modelId, accepts, params }),
    () => isInForeignLoop(messages, provider),
    modelId,
  )
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

/**
 * Leaves out a thinking budget in the middle of a tool loop that was begun without thinking, by another vendor or with
 * its thinking lost: the API refuses it there. Adaptive thinking has no such rule.
 */
function withoutMidLoop(
  thinking: WrittenThinking,
  isForeign: () => boolean,
  modelId: string,
): WrittenThinking {
  const isBudget = objectOf(thinking.fields?.['thinking'])?.['type'] === 'enabled'
  if (!isBudget || !isForeign()) return thinking
  const reason = `${modelId} cannot begin to think in the middle of a tool loop; it was not sent.`
  return { notes: [{ setting: 'reasoning', change: 'dropped', reason }] }
}

/**
 * True if the conversation waits for the answer to results, and no answer since the person's last word begins with
 * thinking of this vendor.
 */
function isInForeignLoop(messages: readonly Message[], provider: string): boolean {
  const last = messages.findLastIndex(({ type }) => type === 'assistant')
  if (!messages.slice(last + 1).some(({ type }) => type === 'tool_result')) return false
  for (let index = last; index >= 0; index--) {
    const message = messages[index]!
    if (message.type === 'user') return true
    if (message.type === 'assistant' && beginsWithThinking(message, provider)) return false
  }
  return true
}

function beginsWithThinking({ content: [first] }: AssistantMessage, provider: string): boolean {
  if (first?.type !== 'reasoning') return false
  const native = nativeOf(first.metadata, provider, API)
  return native?.['type'] === 'redacted_thinking' || textOf(native?.['signature']) !== undefined
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
