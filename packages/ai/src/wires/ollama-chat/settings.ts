import { notEmpty, stopsOf, writtenSettings } from '../settings.ts'
import type { WireSettings, WrittenSettings } from '../wire.ts'

/**
 * Writes settings for Ollama, which has no setting for the tool to call. Only GPT-OSS takes a level of thinking;
 * the server refuses a level for other models ("think value … is not supported for this model").
 */
export function writeOllama(
  settings: WireSettings,
  { modelId = '' }: { readonly modelId?: string } = {},
): WrittenSettings {
  const { temperature, topP, topK, seed, reasoning, toolChoice, parallelToolCalls } = settings
  const isBudget = typeof reasoning === 'object'
  const level = modelId === '' || /gpt-oss/.test(modelId) ? reasoning : true
  return writtenSettings(settings, {
    params: {
      think:
        isBudget || reasoning === undefined
          ? undefined
          : reasoning !== 'off' && (level as string | true),
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
