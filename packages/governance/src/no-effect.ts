import { SkeinError } from '@skein/base'

/**
 * Thrown by a tool that failed before it changed anything. Any other error of a tool that writes
 * leaves its effect in doubt.
 */
export class NoEffectError extends SkeinError {
  constructor(message: string, options: { readonly cause?: unknown } = {}) {
    super(message, { ...options, code: 'NO_EFFECT' })
  }
}
