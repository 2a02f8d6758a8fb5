import { closest } from './closest.ts'

/** The options of a function: their names, and what names of other libraries are called here. */
export interface OptionNames {
  readonly known: readonly string[]
  /** What to write in place of an option that other libraries have, e.g. `maxOutputTokens` for `maxTokens`. */
  readonly renamed?: Readonly<Record<string, string>>
}

/**
 * Says which options of a call do not exist, and what to write instead; undefined if all of them exist. An option
 * without a value counts as absent.
 */
export function unknownOptions(
  given: object,
  { known, renamed = {} }: OptionNames,
): string | undefined {
  const unknown = Object.entries(given)
    .filter(([name, value]) => value !== undefined && !known.includes(name))
    .map(([name]) => `${name}${instead(name, known, renamed)}`)
  return unknown.length === 0 ? undefined : unknown.join(', ')
}

function instead(
  name: string,
  known: readonly string[],
  renamed: Readonly<Record<string, string>>,
): string {
  if (Object.hasOwn(renamed, name)) return ` (use ${renamed[name]})`
  const near = closest(name, known)
  return near === undefined ? '' : ` (did you mean ${near}?)`
}
