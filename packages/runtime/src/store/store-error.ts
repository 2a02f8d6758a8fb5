import { SkeinError } from '@skein/base'

/** The reason why a commit was refused or a store cannot be used. */
export type StoreErrorCode =
  | 'THREAD_EXISTS'
  | 'THREAD_NOT_FOUND'
  | 'THREAD_TERMINATED'
  | 'CLIENT_ID_TAKEN'
  | 'FENCED'
  | 'LOG_MOVED'
  | 'VALUE_MOVED'
  | 'VALUE_LIMIT'
  | 'STATE_CONFLICT'
  | 'TOKEN_SPENT'
  | 'LIMIT_REACHED'
  | 'NOT_JSON'
  | 'TEXT_INVALID'
  | 'STORE_LOCKED'
  | 'STORE_VERSION'
  | 'STORE_CLOSED'
  | 'STORE_CORRUPT'
  | 'STORE_FULL'
  | 'STORE_READ_ONLY'
  | 'STORE_LIMIT'
  | 'STORE_UNREACHABLE'

/** The error for a commit that was refused, or a store that cannot be used. */
export class StoreError extends SkeinError {
  declare readonly code: StoreErrorCode

  constructor(
    message: string,
    options: { readonly code: StoreErrorCode; readonly hint?: string; readonly cause?: unknown },
  ) {
    super(message, options)
  }
}

const UNWRITABLE: ReadonlySet<string> = new Set([
  'STORE_FULL',
  'STORE_READ_ONLY',
  'STORE_LIMIT',
  'STORE_UNREACHABLE',
])

/**
 * Whether the store cannot be written at the moment, so that not even a failure can be recorded. The
 * store works again once it has space, permission or a connection.
 */
export function isUnwritable(error: unknown): error is StoreError {
  return isStoreError(error) && UNWRITABLE.has(error.code)
}

/** Whether this is a store's error (with this code, if given); it may come from another copy of this package. */
export function isStoreError(error: unknown, code?: StoreErrorCode): error is StoreError {
  return SkeinError.is(error) && error.name === 'StoreError' && (!code || error.code === code)
}
