import { RuntimeError } from '../contract/error.ts'

/** A problem of a definition. */
export interface Problem {
  /** e.g. `agent "support"`. */
  readonly subject: string
  /** e.g. `sideA.prompt`. */
  readonly field: string
  readonly message: string
  /** The file of the definition, if it was loaded by `discover`. */
  readonly file?: string
}

/** The error that lists all problems of a set of definitions. */
export class DefinitionError extends RuntimeError {
  readonly problems: readonly Problem[]

  constructor(problems: readonly Problem[], { cause }: { readonly cause?: unknown } = {}) {
    const count = problems.length === 1 ? 'is 1 problem' : `are ${problems.length} problems`
    const lines = problems.map(({ subject, field, message, file }) => {
      const place = file === undefined ? subject : `${subject} (${file})`
      return `- ${place}: ${field === '' ? '' : `${field}: `}${message}`
    })
    super(`There ${count} with the definitions:\n${lines.join('\n')}`, {
      code: 'DEFINITION_INVALID',
      hint: 'Every line names the definition and the field to correct.',
      cause,
    })
    this.problems = Object.freeze([...problems])
  }
}
