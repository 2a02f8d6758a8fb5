import type { Params, Settings, WireName } from '../contract/provider.ts'
import { writeAnthropic } from '../wires/anthropic-messages/settings.ts'
import { writeGoogle } from '../wires/google-generate/settings.ts'
import { writeInteractions } from '../wires/google-interactions/settings.ts'
import { writeOllama } from '../wires/ollama-chat/settings.ts'
import { writeBedrock } from '../wires/bedrock-converse/settings.ts'
import { openaiParameters, writeChat } from '../wires/openai-chat/settings.ts'
import { writeResponses } from '../wires/openai-responses/settings.ts'
import type { WrittenSettings } from '../wires/wire.ts'
import { droppedNames, readClientSettings } from './client-settings.ts'

/** The result of `translateParams`. */
type TranslatedParams = {
  readonly params: Params
  /** Names of parameters that have no equivalent in the model's vendor format. */
  readonly dropped: readonly string[]
}

/**
 * Translates parameters from one vendor format to another. They are passed unchanged if both formats are the same or
 * the second is unknown. For a model that is at hand, give it settings instead: it knows its own names for them.
 */
export function translateParams(
  params: Params,
  from: WireName,
  to: WireName | undefined,
): TranslatedParams {
  if (to === undefined || to === from) return { params, dropped: [] }
  const clientSettings = readClientSettings(params, from)
  const { params: written, dropped } = writers[to](clientSettings.settings)
  return { params: written, dropped: droppedNames(params, clientSettings, dropped) }
}

/**
 * The parameter writer of each vendor format. For Chat Completions it writes OpenAI's parameters, because it
 * is not known here which of the many vendors with that format answers.
 */
const writers: Readonly<Record<WireName, (settings: Settings) => WrittenSettings>> = {
  'openai-chat': (settings) => writeChat(settings, { dialect: { parameters: openaiParameters } }),
  'openai-responses': (settings) => writeResponses(settings),
  'anthropic-messages': (settings) => writeAnthropic(settings),
  'google-generate': (settings) => writeGoogle(settings),
  'google-interactions': (settings) => writeInteractions(settings),
  'bedrock-converse': (settings) => writeBedrock(settings),
  'ollama-chat': (settings) => writeOllama(settings),
}
