import { SkeinError } from '@skein/base'

/** How grave an issue is. Only errors make a thread invalid. */
export type Severity = 'error' | 'warning' | 'info'

/** One finding about a document, with a code that is stable and a JSON pointer (RFC 6901) to the place. */
export interface Issue {
  readonly code: string
  readonly severity: Severity
  readonly pointer: string
  readonly message: string
}

/** One datum that a conversion could not carry over. */
export interface Loss {
  /** JSON pointer into the source of the conversion. */
  readonly pointer: string
  readonly reason: string
}

/** What every bridge returns: the converted value and what it could not carry. */
export interface Converted<T> {
  readonly value: T
  readonly lost: readonly Loss[]
}

/** Base of this package's errors. */
export class ThreadError extends SkeinError {}

/** A document that cannot be read as a thread; `issues` says why. */
export class InvalidThreadError extends ThreadError {
  readonly issues: readonly Issue[]

  constructor(issues: readonly Issue[]) {
    const first = issues.find((issue) => issue.severity === 'error') ?? issues[0]
    const count = issues.filter((issue) => issue.severity === 'error').length
    super(
      `The document is not a valid thread: ${first?.message ?? 'unknown reason'} (at ${first?.pointer || 'the root'}).`,
      {
        code: 'INVALID_THREAD',
        hint: count > 1 ? `${count} errors in all; see error.issues.` : 'See error.issues.',
      },
    )
    this.issues = issues
  }
}

/** A document beyond a limit of size, depth or count. */
export class ThreadLimitError extends ThreadError {
  readonly limit: string
  readonly max: number

  constructor(limit: string, max: number, actual: number | undefined) {
    const seen = actual === undefined ? '' : ` (it has ${actual})`
    super(`The document exceeds the limit ${limit} = ${max}${seen}.`, {
      code: 'THREAD_LIMIT',
      hint: `Raise it with { limits: { ${limit}: … } } if the source is trusted.`,
    })
    this.limit = limit
    this.max = max
  }
}

/** Joins pointer segments, escaping `~` and `/` as RFC 6901 asks. */
export function joinPointer(base: string, ...segments: readonly (string | number)[]): string {
  let pointer = base
  for (const segment of segments) {
    const isPlain = typeof segment === 'number' || !(segment.includes('~') || segment.includes('/'))
    pointer += '/' + (isPlain ? segment : segment.replaceAll('~', '~0').replaceAll('/', '~1'))
  }
  return pointer
}
