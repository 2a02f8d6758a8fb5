import type { AcceptedSettings, Effort } from '../../contract/accepted-settings.ts'
import { acceptedOnly } from '../accepted-only.ts'
import { type Chosen, chooseEffort, noReasoning } from '../reasoning.ts'
import { notEmpty, stopsOf, writtenSettings } from '../settings.ts'
import type { WireSettings, WrittenSettings } from '../wire.ts'
import type { InteractionsDialect } from './types.ts'

/** Writes settings for Interactions, which has levels of thinking and no number of tokens, and neither `topK`. */
export function writeInteractions(
  given: WireSettings,
  {
    dialect,
    modelId = '',
  }: { readonly dialect?: Pick<InteractionsDialect, 'accepts'>; readonly modelId?: string } = {},
): WrittenSettings {
  const accepts = dialect?.accepts?.(modelId)
  const { value: level, notes: thinkingNotes } = thinkingLevel(given.reasoning, accepts, modelId)
  const { settings, notes } = acceptedOnly(given, { modelId, accepts }, true)
  const { toolChoice, parallelToolCalls, topK } = settings
  return writtenSettings(given, {
    params: {
      generation_config: notEmpty({
        max_output_tokens: settings.maxOutputTokens,
        temperature: settings.temperature,
        top_p: settings.topP,
        stop_sequences: stopsOf(settings),
        seed: settings.seed,
        thinking_level: level,
        tool_choice:
          typeof toolChoice === 'object'
            ? { allowed_tools: { mode: 'any', tools: [toolChoice.tool] } }
            : toolChoice && choices[toolChoice],
      }),
    },
    absent: { parallelToolCalls, topK },
    notes: [...notes, ...thinkingNotes],
  })
}

const choices = { auto: 'auto', none: 'none', required: 'any' } as const

/** The levels that every Gemini with levels accepts, apart from Gemini 3 Pro. */
const levels: readonly Effort[] = ['low', 'medium', 'high']

function thinkingLevel(
  reasoning: WireSettings['reasoning'],
  accepts: AcceptedSettings | undefined,
  modelId: string,
): Chosen<Effort> {
  if (reasoning === undefined) return { notes: [] }
  const rule = accepts?.reasoning ?? { by: 'effort', efforts: levels }
  switch (rule.by) {
    case 'effort':
      return chooseEffort(reasoning, rule.efforts, modelId)
    case 'budget':
      return chooseEffort(reasoning, rule.canStop ? ['minimal', ...levels] : levels, modelId)
    case 'adaptive':
    case 'nothing':
      return { notes: reasoning === 'off' ? [] : noReasoning(modelId) }
    default:
      return rule satisfies never
  }
}
