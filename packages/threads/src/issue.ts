import { SkeinError } from '@skein/base'

/** The severity of an issue. Only errors make a thread invalid. */
export type Severity = 'error' | 'warning' | 'info'

/** One issue of a document, with a code that never changes and a JSON pointer (RFC 6901) to the place. */
export interface Issue {
  readonly code: string
  readonly severity: Severity
  readonly pointer: string
  readonly message: string
}

/** A value that a conversion could not keep. */
export interface Loss {
  /** JSON pointer into the source of the conversion. */
  readonly pointer: string
  readonly reason: string
}

/** The result of a conversion: the converted value and the losses. */
export interface Converted<T> {
  readonly value: T
  readonly lost: readonly Loss[]
}

/** Base of this package's errors. */
export class ThreadError extends SkeinError {}

/** Thrown for a document that cannot be read as a thread; `issues` lists the reasons. */
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

/** Thrown for a document that exceeds a limit of size, depth or count. */
export class ThreadLimitError extends ThreadError {
  readonly limit: string
  readonly max: number

  constructor(limit: string, max: number, actual: number | undefined) {
    const actualText = actual === undefined ? '' : ` (it has ${actual})`
    super(`The document exceeds the limit ${limit} = ${max}${actualText}.`, {
      code: 'THREAD_LIMIT',
      hint: `Raise it with { limits: { ${limit}: … } } if the source is trusted.`,
    })
    this.limit = limit
    this.max = max
  }
}

/** Joins the segments of a JSON pointer, escaping `~` and `/` as RFC 6901 requires. */
export function joinPointer(base: string, ...segments: readonly (string | number)[]): string {
  let pointer = base
  for (const segment of segments) {
    const isPlain = typeof segment === 'number' || !(segment.includes('~') || segment.includes('/'))
    pointer += '/' + (isPlain ? segment : segment.replaceAll('~', '~0').replaceAll('/', '~1'))
  }
  return pointer
}
