import { SkeinError } from '@skein/base'

/** Thrown where something is declared wrongly; names all problems at once. */
export function invalidDefinition(
  kind: string,
  name: string,
  problems: readonly string[],
): SkeinError {
  return new SkeinError(`The ${kind} "${name}" is not well defined: ${problems.join('; ')}.`, {
    code: 'GOVERNANCE_DEFINITION_INVALID',
  })
}
