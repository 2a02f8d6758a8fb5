import { RuntimeError } from '../error.ts'
import type { Problem } from './resolved.ts'

/** Everything that is wrong with a set of definitions, at once. */
export class DefinitionError extends RuntimeError {
  readonly problems: readonly Problem[]

  constructor(problems: readonly Problem[]) {
    const count = problems.length === 1 ? 'is 1 problem' : `are ${problems.length} problems`
    super(`There ${count} with the definitions:\n${problems.map(toLine).join('\n')}`, {
      code: 'DEFINITION_INVALID',
      hint: 'Every line names the definition and the field to mend.',
    })
    this.problems = Object.freeze([...problems])
  }
}

function toLine({ subject, field, message, file }: Problem): string {
  const place = file === undefined ? subject : `${subject} (${file})`
  return `- ${place}: ${field === '' ? '' : `${field}: `}${message}`
}
