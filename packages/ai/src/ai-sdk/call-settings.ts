import type { RequestScope, Settings } from '../contract/provider.ts'
import type { AiSdkCallOptions, AiSdkWarning } from './types.ts'

/** The AI SDK's name of each setting. */
const names: Readonly<Record<keyof Settings, string>> = {
  temperature: 'temperature',
  maxOutputTokens: 'maxOutputTokens',
  topP: 'topP',
  stop: 'stopSequences',
  seed: 'seed',
  topK: 'topK',
  toolChoice: 'toolChoice',
  parallelToolCalls: 'parallelToolCalls',
  reasoning: 'reasoning',
}

/** The settings of a call, with what no setting of this package expresses. */
export interface AiSdkCallSettings {
  readonly settings: Settings
  /** The penalties, which only some formats have. */
  readonly scopes: readonly RequestScope[]
  readonly warnings: readonly AiSdkWarning[]
}

/** Returns the warnings about settings that the model does not have. */
export function droppedWarnings(dropped: readonly (keyof Settings)[]): readonly AiSdkWarning[] {
  return dropped.map((name) => ({ type: 'unsupported', feature: names[name] }))
}

/** Reads the settings of a call as settings that each model writes under its own names. */
export function readCallSettings(
  call: AiSdkCallOptions,
  model: { readonly wire?: string },
): AiSdkCallSettings {
  const { toolChoice, presencePenalty, frequencyPenalty } = call
  const hasTools = call.tools !== undefined && call.tools.length > 0
  const level = call.reasoning === undefined ? undefined : levels[call.reasoning]
  const all = {
    temperature: call.temperature,
    maxOutputTokens: call.maxOutputTokens,
    topP: call.topP,
    topK: call.topK,
    stop: call.stopSequences,
    seed: call.seed,
    toolChoice: hasTools && toolChoice ? choiceOf(toolChoice) : undefined,
    reasoning: level?.setting,
  }
  const entries = Object.entries(all).filter(([, value]) => value !== undefined)
  const settings: Settings = Object.fromEntries(entries)
  const warnings: AiSdkWarning[] = []
  if (level?.isNear)
    warnings.push({
      type: 'compatibility',
      feature: 'reasoning',
      details: `${call.reasoning} was sent as ${String(level.setting)}.`,
    })
  const penalties = { presencePenalty, frequencyPenalty }
  const scopes = penaltyScopes(penalties)
  for (const [name, value] of Object.entries(penalties))
    if (
      value !== undefined &&
      model.wire !== undefined &&
      !scopes.some(({ wire }) => wire === model.wire)
    )
      // prettier-ignore
      warnings.push({ type: 'unsupported', feature: name })
  return { settings, scopes, warnings }
}

const levels: Readonly<
  Record<string, { readonly setting?: Settings['reasoning']; readonly isNear?: boolean }>
> = {
  'provider-default': {},
  none: { setting: 'off' },
  minimal: { setting: 'low', isNear: true },
  low: { setting: 'low' },
  medium: { setting: 'medium' },
  high: { setting: 'high' },
  xhigh: { setting: 'high', isNear: true },
}

function choiceOf({
  type,
  toolName = '',
}: NonNullable<AiSdkCallOptions['toolChoice']>): Settings['toolChoice'] {
  switch (type) {
    case 'auto':
    case 'none':
    case 'required':
      return type
    case 'tool':
      return { tool: toolName }
    default:
      return undefined
  }
}

function penaltyScopes({
  presencePenalty,
  frequencyPenalty,
}: Pick<AiSdkCallOptions, 'presencePenalty' | 'frequencyPenalty'>): readonly RequestScope[] {
  if (presencePenalty === undefined && frequencyPenalty === undefined) return []
  const snake = defined({ presence_penalty: presencePenalty, frequency_penalty: frequencyPenalty })
  return [
    { wire: 'openai-chat', params: snake },
    { wire: 'google-generate', params: defined({ presencePenalty, frequencyPenalty }) },
    { wire: 'ollama-chat', params: { options: snake } },
  ]
}

function defined(fields: Readonly<Record<string, unknown>>): Record<string, unknown> {
  return Object.fromEntries(Object.entries(fields).filter(([, value]) => value !== undefined))
}
