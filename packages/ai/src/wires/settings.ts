import type { JsonObject, JsonValue } from '@skein/base'
import type { AcceptedSettings } from '../contract/accepted-settings.ts'
import type { Params, Settings, ToolChoice } from '../contract/provider.ts'
import type { SettingNote, WireSettings, WrittenSettings } from './wire.ts'

/**
 * Leaves out parameters that are undefined. The settings that have a value in `absent`, and those that a note
 * says were dropped, are reported as dropped.
 */
export function writtenSettings(
  settings: WireSettings,
  {
    params,
    absent,
    notes = [],
  }: {
    readonly params: Readonly<Record<string, JsonValue | undefined>>
    readonly absent: Partial<Record<keyof WireSettings, unknown>>
    readonly notes?: readonly SettingNote[]
  },
): WrittenSettings {
  const names = Object.keys(settings) as (keyof WireSettings)[]
  const isDropped = (name: keyof WireSettings): boolean =>
    notes.some(({ setting, change }) => setting === name && change === 'dropped')
  return {
    params: notEmpty(params) ?? {},
    dropped: names.filter((name) => absent[name] !== undefined || isDropped(name)),
    notes,
  }
}

/** Returns the fields that have a value; undefined if there are none. */
export function notEmpty(
  fields: Readonly<Record<string, JsonValue | undefined>>,
): JsonObject | undefined {
  const given = Object.entries(fields).filter(([, value]) => value !== undefined)
  return given.length > 0 ? Object.fromEntries(given) : undefined
}

/** Returns the stop texts as a list. */
export function stopsOf({ stop }: Settings): readonly string[] | undefined {
  return typeof stop === 'string' ? [stop] : stop
}

/** Writes a tool choice as OpenAI's two APIs do; `named` writes the name of one tool. */
export function openaiChoice(
  choice: ToolChoice | undefined,
  named: (name: string) => JsonObject,
): JsonValue | undefined {
  return typeof choice === 'object' ? { type: 'function', ...named(choice.tool) } : choice
}

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
  const kept: { -readonly [Name in keyof WireSettings]: WireSettings[Name] } = { ...settings }
  const notes: SettingNote[] = []
  const drop = (setting: keyof WireSettings, reason: string): void => {
    if (kept[setting] === undefined) return
    delete kept[setting]
    notes.push({ setting, change: 'dropped', reason: `${modelId} ${reason}; it was not sent.` })
  }
  const { sampling, stop, forcedTools, maxOutputTokens, oneSampler } = accepts
  if (sampling === 'refused') for (const name of samplers) drop(name, 'refuses it')
  if (sampling === 'without_reasoning' && isThinking)
    for (const name of samplers) drop(name, 'refuses it while it thinks')
  if (oneSampler && kept.temperature !== undefined)
    drop('topP', 'accepts either temperature or topP')
  if (stop === 'refused') drop('stop', 'refuses it')
  const isForced = kept.toolChoice === 'required' || typeof kept.toolChoice === 'object'
  if (isForced && forcedTools === 'refused') drop('toolChoice', 'does not let a call be forced')
  if (maxOutputTokens !== undefined && (kept.maxOutputTokens ?? 0) > maxOutputTokens) {
    kept.maxOutputTokens = maxOutputTokens
    const reason = `${modelId} writes at most ${maxOutputTokens} tokens; that limit was sent.`
    notes.push({ setting: 'maxOutputTokens', change: 'adjusted', reason })
  }
  return { settings: kept, notes }
}

const samplers = ['temperature', 'topP', 'topK'] as const
