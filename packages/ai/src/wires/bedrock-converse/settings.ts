import type { Message } from '../../contract/message.ts'
import type { Params } from '../../contract/provider.ts'
import { notEmpty, stopsOf, writtenSettings } from '../settings.ts'
import type { Target, WireSettings, WrittenSettings } from '../wire.ts'
import type { BedrockDialect } from './types.ts'

/** Writes settings for Converse, which has neither `topK`, `seed`, thinking, nor a choice of no tool. */
export function writeBedrock(
  given: WireSettings,
  { dialect, modelId = '' }: Partial<Target<BedrockDialect>> = {},
  params: Params = {},
  messages: readonly Message[] = [],
): WrittenSettings {
  const own = dialect?.writeSettings?.(given, modelId, params, messages)
  if (own) return own
  const { toolChoice, reasoning } = given
  return writtenSettings(given, {
    params: {
      inferenceConfig: notEmpty({
        maxTokens: given.maxOutputTokens,
        temperature: given.temperature,
        topP: given.topP,
        stopSequences: stopsOf(given),
      }),
      toolConfig:
        toolChoice === undefined || toolChoice === 'none'
          ? undefined
          : {
              toolChoice:
                typeof toolChoice === 'object'
                  ? { tool: { name: toolChoice.tool } }
                  : toolChoice === 'auto'
                    ? { auto: {} }
                    : { any: {} },
            },
    },
    absent: {
      topK: given.topK,
      seed: given.seed,
      parallelToolCalls: given.parallelToolCalls,
      toolChoice: toolChoice === 'none' ? toolChoice : undefined,
      reasoning: reasoning === 'off' ? undefined : reasoning,
    },
  })
}
