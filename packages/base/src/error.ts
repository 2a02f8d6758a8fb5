const brand = Symbol.for('skein.error')

/** What every Skein error is made of. */
export interface SkeinErrorOptions {
  /** A stable word that a program can switch on. */
  readonly code: string
  /** What the reader can do about it. */
  readonly hint?: string | undefined
  /** The error that led here; kept on the error, left out of its JSON. */
  readonly cause?: unknown
}

/** Base of all Skein errors: a code for programs, a message naming the thing, a hint for people. */
export class SkeinError extends Error {
  readonly code: string
  readonly hint: string | undefined

  // On the prototype, so that it shows in no listing of an error's fields.
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

  /** Safe to send: no stack and no cause, which may hold paths or request headers. */
  toJSON(): { name: string; code: string; message: string; hint?: string } {
    const { name, code, message, hint } = this
    return hint === undefined ? { name, code, message } : { name, code, message, hint }
  }
}

/** The text of anything that can be thrown. Values that are neither errors nor strings are named by type, not quoted. */
export function messageOf(error: unknown): string {
  try {
    if (error instanceof Error) return String(error.message || error.name)
    return typeof error === 'string' ? error : `A ${typeof error} was thrown.`
  } catch {
    return 'An object that cannot be read was thrown.'
  }
}
