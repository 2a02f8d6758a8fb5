import { StoreError } from '@skein/runtime'

/** Returns the quoted name of a schema or role; throws if it is not a plain lower-case name. */
export function quoted(name: string): string {
  if (/^[a-z_][a-z0-9_]{0,62}$/.test(name)) return `"${name}"`
  throw new StoreError(`"${name}" cannot be the name of a schema or role.`, {
    code: 'TEXT_INVALID',
    hint: 'Use at most 63 lower-case letters, digits and underscores, and begin with a letter.',
  })
}
