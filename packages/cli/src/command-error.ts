import { SkeinError } from '@skein/base'
import { ExitCode } from './exit-code.ts'

/** Something the command cannot do; it says so and ends with a code. */
export class CommandError extends SkeinError {
  readonly exitCode: ExitCode

  constructor(
    message: string,
    options: {
      readonly code: string
      readonly hint?: string
      readonly exitCode?: ExitCode
      readonly cause?: unknown
    },
  ) {
    super(message, options)
    this.exitCode = options.exitCode ?? ExitCode.Failed
  }
}

/** The command was not called as it wants to be. */
export function usageError(message: string, hint?: string): CommandError {
  return new CommandError(message, {
    code: 'USAGE',
    exitCode: ExitCode.Usage,
    ...(hint !== undefined && { hint }),
  })
}
