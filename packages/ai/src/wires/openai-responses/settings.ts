import type { Params } from '../../contract/provider.ts'
import { chooseEffort, noReasoning } from '../reasoning.ts'
import { objectOf } from '../read-json.ts'
import { stopsOf, writtenSettings } from '../settings.ts'
import { openaiChoice } from '../openai-choice.ts'
import { acceptedOnly } from '../accepted-only.ts'
import type { SettingNote, WireSettings, WrittenSettings } from '../wire.ts'
import type { OpenAIResponsesDialect } from './types.ts'

/** Writes settings for Responses, which has neither `stop` nor `seed`. */
export function writeResponses(
  given: WireSettings,
  {
    dialect,
    modelId = '',
  }: {
    readonly dialect?: Pick<OpenAIResponsesDialect, 'accepts'>
    readonly modelId?: string
  } = {},
  params: Params = {},
): WrittenSettings {
  const accepts = dialect?.accepts?.(modelId)
  const { reasoning } = given
  const thinking = responsesReasoning(reasoning, accepts, modelId)
  const effort = objectOf(params['reasoning'])?.['effort'] ?? thinking.effort
  const isThinking = effort == null ? accepts?.thinksByDefault === true : effort !== 'none'
  // This format has no `stop` at all, whatever the model accepts.
  const { settings, notes } = acceptedOnly(
    { ...given, stop: undefined },
    { modelId, accepts },
    isThinking,
  )
  return writtenSettings(given, {
    params: {
      max_output_tokens: settings.maxOutputTokens,
      temperature: settings.temperature,
      top_p: settings.topP,
      reasoning: thinking.effort === undefined ? undefined : { effort: thinking.effort },
      parallel_tool_calls: settings.parallelToolCalls,
      tool_choice: openaiChoice(settings.toolChoice, (name) => ({ name })),
    },
    absent: {
      topK: settings.topK,
      seed: settings.seed,
      stop: stopsOf(given),
      reasoning: thinking.isWritten ? undefined : reasoning,
    },
    notes: [...notes, ...thinking.notes],
  })
}

interface ResponsesReasoning {
  readonly effort?: string
  /** False if the setting cannot be written. */
  readonly isWritten: boolean
  readonly notes: readonly SettingNote[]
}

function responsesReasoning(
  reasoning: WireSettings['reasoning'],
  accepts: ReturnType<NonNullable<OpenAIResponsesDialect['accepts']>>,
  modelId: string,
): ResponsesReasoning {
  if (reasoning === undefined) return { isWritten: true, notes: [] }
  if (!accepts) {
    if (typeof reasoning === 'object') return { isWritten: false, notes: [] }
    return { effort: reasoning === 'off' ? 'none' : reasoning, isWritten: true, notes: [] }
  }
  if (accepts.reasoning.by !== 'effort') {
    const isFulfilled = reasoning === 'off' && !accepts.thinksByDefault
    return { isWritten: isFulfilled, notes: isFulfilled ? [] : noReasoning(modelId) }
  }
  const { value, notes } = chooseEffort(reasoning, accepts.reasoning.efforts, modelId)
  return { ...(value && { effort: value }), isWritten: value !== undefined, notes }
}
