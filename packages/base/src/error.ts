import { wellFormed } from './well-formed.ts'

const brand = Symbol.for('skein.error')

/** The fields of a Skein error. */
export interface SkeinErrorOptions {
  /** A stable identifier for programs to compare with. */
  readonly code: string
  /** How the reader can fix the problem. */
  readonly hint?: string | undefined
  /** The value that caused this error. It is kept as `error.cause` but left out of the JSON of the error. */
  readonly cause?: unknown
}

/**
 * The base class of all Skein errors: a code for programs, a message that names the problem, a hint for
 * people.
 */
export class SkeinError extends Error {
  readonly code: string
  readonly hint: string | undefined

  // `SkeinError.is` recognises an error by the symbol `brand`. The symbol is defined on the prototype, so
  // that it does not appear when an error's fields are listed.
  static {
    Object.defineProperty(this.prototype, brand, { value: true })
  }

  constructor(message: string, { code, hint, cause }: SkeinErrorOptions) {
    super(message, cause === undefined ? undefined : { cause })
    this.name = new.target.name
    this.code = code
    this.hint = hint
  }

  /** True for any Skein error, also one made by another copy of this package. */
  static is(error: unknown): error is SkeinError {
    return error instanceof Error && brand in error
  }

  /**
   * Returns the error as JSON that is safe to send: without stack and cause, which may contain paths or
   * request headers.
   */
  toJSON(): { name: string; code: string; message: string; hint?: string } {
    const { name, code, message, hint } = this
    return hint === undefined ? { name, code, message } : { name, code, message, hint }
  }
}

/**
 * Returns a message for any thrown value, without halves of surrogate pairs. Of an object that is no error only
 * its `message` is shown, and of other values only the type, because the value itself may be private.
 */
export function messageOf(error: unknown): string {
  try {
    if (error instanceof Error) return wellFormed(String(error.message || error.name))
    if (typeof error === 'string') return wellFormed(error)
    if (error === null || error === undefined) return `${error} was thrown.`
    if (typeof error !== 'object') return `A ${typeof error} was thrown.`
    const { message } = error as { readonly message?: unknown }
    if (typeof message === 'string' && message !== '') return wellFormed(message)
    return 'An object that is not an error was thrown.'
  } catch {
    return 'An object that cannot be read was thrown.'
  }
}
