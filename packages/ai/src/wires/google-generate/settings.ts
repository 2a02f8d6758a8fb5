import type { JsonObject } from '@skein/base'
import type { AcceptedSettings } from '../../contract/accepted-settings.ts'
import type { Settings } from '../../contract/provider.ts'
import { chooseBudget, chooseEffort, noReasoning } from '../reasoning.ts'
import { notEmpty, stopsOf, writtenSettings } from '../settings.ts'
import { acceptedOnly } from '../accepted-only.ts'
import type { SettingNote, WireSettings, WrittenSettings } from '../wire.ts'
import type { GoogleDialect } from './types.ts'

/** Writes settings for Google: thinking as a number of tokens (Gemini 2.5) or as a level. */
export function writeGoogle(
  given: WireSettings,
  {
    dialect,
    modelId = '',
  }: { readonly dialect?: Pick<GoogleDialect, 'accepts'>; readonly modelId?: string } = {},
): WrittenSettings {
  const accepts = dialect?.accepts?.(modelId)
  const thinking = googleThinking(given.reasoning, { accepts, modelId })
  const { settings, notes } = acceptedOnly(given, { modelId, accepts }, true)
  const { toolChoice, parallelToolCalls } = settings
  return writtenSettings(given, {
    params: {
      generationConfig: notEmpty({
        maxOutputTokens: settings.maxOutputTokens,
        temperature: settings.temperature,
        topP: settings.topP,
        topK: settings.topK,
        stopSequences: stopsOf(settings),
        seed: settings.seed,
        thinkingConfig: thinking.config,
      }),
      toolConfig: toolChoice && {
        functionCallingConfig: notEmpty({
          mode: typeof toolChoice === 'string' ? googleModes[toolChoice] : 'ANY',
          allowedFunctionNames: typeof toolChoice === 'string' ? undefined : [toolChoice.tool],
        }),
      },
    },
    absent: { parallelToolCalls },
    notes: [...notes, ...thinking.notes],
  })
}

const googleModes = { auto: 'AUTO', none: 'NONE', required: 'ANY' } as const

interface GoogleThinking {
  readonly config?: JsonObject
  readonly notes: readonly SettingNote[]
}

function googleThinking(
  reasoning: Settings['reasoning'],
  {
    accepts,
    modelId,
  }: { readonly accepts: AcceptedSettings | undefined; readonly modelId: string },
): GoogleThinking {
  if (reasoning === undefined) return { notes: [] }
  const reasoningRule = accepts?.reasoning ?? { by: 'effort', efforts: levels, takesBudget: true }
  switch (reasoningRule.by) {
    case 'budget': {
      const { value, notes } = chooseBudget(reasoning, { ...reasoningRule, modelId })
      return value === undefined ? { notes } : { config: { thinkingBudget: value }, notes }
    }
    case 'effort': {
      if (typeof reasoning === 'object' && reasoning.budget > 0 && reasoningRule.takesBudget)
        return { config: { thinkingBudget: reasoning.budget }, notes: [] }
      const { value, notes } = chooseEffort(reasoning, reasoningRule.efforts, modelId)
      return value === undefined ? { notes } : { config: { thinkingLevel: value }, notes }
    }
    case 'adaptive':
    case 'nothing':
      return { notes: reasoning === 'off' ? [] : noReasoning(modelId) }
    default:
      return reasoningRule satisfies never
  }
}

/** The levels that every Gemini with levels accepts, apart from Gemini 3 Pro. */
const levels = ['low', 'medium', 'high'] as const
