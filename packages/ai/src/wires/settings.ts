import type { JsonObject, JsonValue } from '@skein/base'
import type { Settings } from '../contract/provider.ts'
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
  const entries = Object.entries(fields).filter(([, value]) => value !== undefined)
  return entries.length > 0 ? Object.fromEntries(entries) : undefined
}

/** Returns the stop texts as a list. */
export function stopsOf({ stop }: Settings): readonly string[] | undefined {
  return typeof stop === 'string' ? [stop] : stop
}
