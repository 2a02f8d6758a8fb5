import type { JsonValue } from '@skein/base'

/** A user of a tenant. The same name in two tenants means two users. */
export interface UserOf {
  readonly tenant: string
  readonly user: string
}

/** A value that belongs to a user and that all threads of the user share. */
export interface UserValue {
  readonly key: string
  readonly value: JsonValue
  /** A new number with every write. No number is used twice in one store, not even after the value was removed. */
  readonly version: number
  readonly updatedAt: string
}

/** The change of one commit to one value of a user. */
export interface UserValueChange extends UserOf {
  readonly key: string
  /** Null removes the value. */
  readonly value: JsonValue | null
  /** The time of the change (ISO 8601). */
  readonly at: string
  /**
   * The version that the writer has read, or null if there was no value. If the value has another version,
   * the commit is refused (`VALUE_MOVED`). If `expectVersion` is missing, the value is set in any case.
   */
  readonly expectVersion?: number | null
}

/** The largest number of values of one user; a commit beyond it is refused (`VALUE_LIMIT`). */
export const MAX_USER_VALUES = 1000
