import type { AcceptedSettings, Effort } from '../../contract/accepted-settings.ts'
import { everything, ruleOf, type AcceptedRule } from './rule.ts'

const plain = (maxOutputTokens?: number): AcceptedSettings => ({ ...everything, maxOutputTokens })

/** A model that always thinks, and so refuses `temperature`, `top_p` and `stop`. */
const thinking = (efforts: readonly Effort[], maxOutputTokens?: number): AcceptedSettings => ({
  ...everything,
  reasoning: { by: 'effort', efforts },
  thinksByDefault: true,
  sampling: 'refused',
  stop: 'refused',
  maxOutputTokens,
})

/** A model with the effort `none`, which alone allows `temperature` and `top_p`. */
const optional = (efforts: readonly Effort[], thinksByDefault: boolean): AcceptedSettings => ({
  ...thinking(['none', ...efforts], 128_000),
  thinksByDefault,
  sampling: 'without_reasoning',
})

const upToHigh: readonly Effort[] = ['low', 'medium', 'high']
const upToXhigh: readonly Effort[] = [...upToHigh, 'xhigh']
const upToMax: readonly Effort[] = [...upToXhigh, 'max']

/** What each model of OpenAI accepts. */
export const gptRules: readonly AcceptedRule[] = [
  // Models that are no language models come first, because their names begin like those of language models.
  {
    models:
      /image|audio|realtime|transcribe|tts|whisper|embedding|moderation|dall-e|^text-|^(?:ada|babbage|curie|davinci)/,
    accepts: plain(),
    sources: 'n',
  },
  { models: /gpt-4o(?:-mini)?-search/, accepts: { ...plain(), sampling: 'refused' }, sources: 'n' },
  { models: /gpt-4\.1/, accepts: plain(32_768), sources: 'nt' },
  { models: /gpt-4o/, accepts: plain(16_384), sources: 'nt' },
  { models: /gpt-(?:4|3\.5)/, accepts: plain(), sources: 'n' },
  {
    models: /gpt-oss/,
    accepts: { ...thinking(upToHigh), sampling: 'accepted', stop: 'accepted' },
    sources: 'n',
  },
  { models: /gpt-5-chat/, accepts: plain(), sources: 'nq' },
  { models: /gpt-5\.\d+-chat/, accepts: thinking(['medium']), sources: 'r' },
  { models: /gpt-5-pro/, accepts: thinking(['high']), sources: 'opH' },
  { models: /gpt-5\.\d+-pro/, accepts: thinking(['medium', 'high', 'xhigh']), sources: 's' },
  { models: /gpt-5(?:\.1)?-codex(?!-max)/, accepts: thinking(upToHigh, 128_000), sources: 's' },
  { models: /gpt-5\.\d+-codex/, accepts: thinking(upToXhigh, 128_000), sources: 'os' },
  {
    models: /gpt-5(?![\d.])/,
    accepts: thinking(['minimal', ...upToHigh], 128_000),
    sources: 'noH',
  },
  { models: /gpt-5\.1(?!\d)/, accepts: optional(upToHigh, false), sources: 'noH' },
  { models: /gpt-5\.[2-4](?!\d)/, accepts: optional(upToXhigh, false), sources: 'noH' },
  { models: /gpt-5\.5(?!\d)/, accepts: optional(upToXhigh, true), sources: 'n' },
  {
    models: /gpt-5\.|gpt-6-(?:sol|luna)|gpt-6\.1-terra/,
    accepts: optional(upToMax, true),
    sources: 'nuH',
  },
  { models: /\bo1-(?:mini|preview)/, accepts: { ...plain(), sampling: 'refused' }, sources: 'v' },
  { models: /deep-research/, accepts: thinking(['medium'], 100_000), sources: 's' },
  {
    models: /\bo\d(?!\w)|codex-mini|computer-use/,
    accepts: thinking(upToHigh, 100_000),
    sources: 'no',
  },
  { models: /(?:)/, accepts: thinking(upToMax, undefined), sources: 'nwH' },
]

/** Returns the settings that a model of OpenAI accepts; those of the newest for an unknown one. */
export function acceptedByOpenAI(modelId: string): AcceptedSettings {
  return ruleOf(gptRules, modelId).accepts
}

/**
 * Returns the settings that the model of an Azure deployment accepts, if the name of the deployment is that of a
 * model; undefined for other names, which say nothing of the model.
 */
export function acceptedByDeployment(name: string): AcceptedSettings | undefined {
  return /gpt-\d|\bo\d(?!\w)/.test(name) ? acceptedByOpenAI(name) : undefined
}
