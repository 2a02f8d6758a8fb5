import type { AcceptedSettings } from '../contract/accepted-settings.ts'
import type { Params } from '../contract/provider.ts'
import type { SettingNote, WireSettings } from './wire.ts'

/** A model, what it accepts, and the parameters of the caller, which win over settings. */
export interface SettingsContext {
  readonly modelId: string
  readonly accepts: AcceptedSettings | undefined
  readonly params: Params
}

/**
 * Removes the settings that the model refuses, apart from `reasoning`, and lowers `maxOutputTokens` to its
 * limit. `isThinking` says whether the model will think with this request.
 */
export function acceptedOnly(
  settings: WireSettings,
  { modelId, accepts }: Pick<SettingsContext, 'modelId' | 'accepts'>,
  isThinking: boolean,
): { readonly settings: WireSettings; readonly notes: readonly SettingNote[] } {
  if (!accepts) return { settings, notes: [] }
  const acceptedSettings: { -readonly [Name in keyof WireSettings]: WireSettings[Name] } = {
    ...settings,
  }
  const notes: SettingNote[] = []
  const drop = (setting: keyof WireSettings, reason: string): void => {
    if (acceptedSettings[setting] === undefined) return
    delete acceptedSettings[setting]
    notes.push({ setting, change: 'dropped', reason: `${modelId} ${reason}; it was not sent.` })
  }
  const { sampling, stop, forcedTools, maxOutputTokens, oneSampler } = accepts
  if (sampling === 'refused') for (const name of samplers) drop(name, 'refuses it')
  if (sampling === 'without_reasoning' && isThinking)
    for (const name of samplers) drop(name, 'refuses it while it thinks')
  if (oneSampler && acceptedSettings.temperature !== undefined)
    drop('topP', 'accepts either temperature or topP')
  if (stop === 'refused') drop('stop', 'refuses it')
  const isForced =
    acceptedSettings.toolChoice === 'required' || typeof acceptedSettings.toolChoice === 'object'
  if (isForced && forcedTools === 'refused') drop('toolChoice', 'does not let a call be forced')
  if (maxOutputTokens !== undefined && (acceptedSettings.maxOutputTokens ?? 0) > maxOutputTokens) {
    acceptedSettings.maxOutputTokens = maxOutputTokens
    const reason = `${modelId} writes at most ${maxOutputTokens} tokens; that limit was sent.`
    notes.push({ setting: 'maxOutputTokens', change: 'adjusted', reason })
  }
  return { settings: acceptedSettings, notes }
}

const samplers = ['temperature', 'topP', 'topK'] as const
