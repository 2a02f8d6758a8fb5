import type { AcceptedSettings } from '../../contract/accepted-settings.ts'

/** The settings that some models of a family accept. */
export interface AcceptedRule {
  /** The ids of the models. The first rule of a list that matches counts. */
  readonly models: RegExp
  readonly accepts: AcceptedSettings
  /** The only API of the models, for a vendor with several. */
  readonly api?: 'interactions'
  /** The sources, one letter each; `sources.ts` says which. */
  readonly sources: string
}

/** Returns the rule of a model. The last rule of every list matches all models: it is that of the newest ones. */
export function ruleOf(rules: readonly AcceptedRule[], modelId: string): AcceptedRule {
  return rules.find(({ models }) => models.test(modelId)) ?? rules.at(-1)!
}

/** What a model accepts if a rule says nothing else. */
export const everything: AcceptedSettings = {
  reasoning: { by: 'nothing' },
  thinksByDefault: false,
  sampling: 'accepted',
  forcedTools: 'accepted',
  stop: 'accepted',
}
