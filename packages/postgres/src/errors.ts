import { isStoreError, StoreError } from '@skein/runtime'

/** Returns the code of an error: SQLSTATE from the server, or the code of the operating system. */
export function codeOf(error: unknown): string | undefined {
  const code = error instanceof Error && 'code' in error ? error.code : undefined
  return typeof code === 'string' ? code : undefined
}

/** Whether other transactions were in conflict with this one, so that the same transaction may succeed if repeated. */
export function isConflict(error: unknown): boolean {
  const code = codeOf(error)
  // A deadlock, a serialization failure, or a lock that was not free in time.
  return code === '40P01' || code === '40001' || code === '55P03'
}

/** Whether another transaction has written the same key: a thread id, client id, token or audit line. */
export function isDuplicate(error: unknown): boolean {
  return codeOf(error) === '23505'
}

/** Whether the server answered that it did not perform the statement; otherwise it is not known whether it did. */
export function isAnswer(error: unknown): boolean {
  return /^[0-9A-Z]{5}$/.test(codeOf(error) ?? '') && !isLost(error)
}

const LOST: ReadonlySet<string> = new Set([
  'ECONNRESET',
  'ECONNREFUSED',
  'ECONNABORTED',
  'EPIPE',
  'ETIMEDOUT',
  'EHOSTUNREACH',
  'ENETUNREACH',
  'EHOSTDOWN',
  'ENOTFOUND',
  'EAI_AGAIN',
  '57P01', // admin_shutdown
  '57P02', // crash_shutdown
  '57P03', // cannot_connect_now
  '57P05', // idle_session_timeout
  '25P03', // idle_in_transaction_session_timeout
  '25006', // read_only_sql_transaction: still connected to the former primary
  '53300', // too_many_connections
])

/** Errors of pg that have no code, for a connection that is lost or could not be opened. */
const LOST_TEXT =
  /^(?:Connection terminated|Client has encountered a connection error|Client was closed|Query read timeout|timeout exceeded|timeout expired)/

/** Whether the connection was lost, or the server cannot be used now, e.g. because it is failing over. */
export function isLost(error: unknown): boolean {
  const code = codeOf(error)
  if (code !== undefined) return LOST.has(code) || code.startsWith('08')
  return error instanceof Error && LOST_TEXT.test(error.message)
}

/**
 * Converts an error of the server, of the network or of pg to a `StoreError` that says what to do. Returns
 * errors of the store, and unknown errors, unchanged. No text contains the address or the password.
 */
export function storeFailure(error: unknown): unknown {
  if (isStoreError(error)) return error
  const code = codeOf(error)
  const cause = withoutClient(error)
  switch (code) {
    case '53100':
      return new StoreError('The disk of the database is full: nothing more can be written.', {
        code: 'STORE_FULL',
        hint: 'Free space on the disk of the server. Work then continues by itself.',
        cause,
      })
    case '25006':
    case '42501':
      return new StoreError('The database cannot be written by this connection.', {
        code: 'STORE_READ_ONLY',
        hint: 'Connect to the primary server (`target_session_attrs`), with the role that owns the schema.',
        cause,
      })
    case '53000':
    case '53200':
    case '53300':
    case '53400':
    case '54000':
    case '22026':
      return new StoreError('The database has reached a limit.', {
        code: 'STORE_LIMIT',
        hint: `PostgreSQL says ${code}: see max_connections, memory, and the size of what is stored (1 GB per value).`,
        cause,
      })
    case 'XX001':
    case 'XX002':
      return new StoreError('The database is damaged.', {
        code: 'STORE_CORRUPT',
        hint: 'Stop the server, keep a copy of its files, and restore a backup.',
        cause,
      })
    case '28000':
    case '28P01':
    case '3D000':
      return unreachable(
        'The database refused the connection',
        cause,
        'Check user, password and database name.',
      )
    case 'ERR_INVALID_URL':
    case 'ERR_SOCKET_BAD_PORT':
      // Without the cause, which contains the address.
      return new StoreError('The address of the database is not valid.', {
        code: 'STORE_UNREACHABLE',
        hint: 'Write it as postgres://user:password@host:5432/database, with special characters percent-encoded.',
      })
    case '42P01':
    case '3F000':
      return new StoreError('Tables of the store are missing.', {
        code: 'STORE_CORRUPT',
        hint: 'They were dropped. Restore a backup.',
        cause,
      })
    default:
      return isLost(error) || isConflict(error)
        ? unreachable(
            'The database cannot be reached',
            cause,
            'Nothing is lost that was acknowledged. Work continues by itself when the server is back.',
          )
        : cause
  }
}

/**
 * Returns an error with the same text and code and nothing else: errors of pg refer to their connection,
 * which contains the password, and details from the server quote the data that was to be stored.
 */
function withoutClient(error: unknown): unknown {
  const code = codeOf(error)
  if (!(error instanceof Error) || (code === undefined && !('client' in error))) return error
  const clean = Object.assign(new Error(error.message), { code })
  clean.name = error.name
  if (error.stack !== undefined) clean.stack = error.stack
  return clean
}

function unreachable(what: string, cause: unknown, hint: string): StoreError {
  const code = codeOf(cause)
  const detail = code ?? (cause instanceof Error ? cause.message : undefined)
  return new StoreError(`${what}${detail === undefined ? '' : ` (${detail})`}.`, {
    code: 'STORE_UNREACHABLE',
    hint,
    cause,
  })
}

/** The error for two transactions that wrote the same key at the same time; it has the code of a conflict. */
export class StoreRace extends Error {
  readonly code = '40001'

  constructor(cause: unknown) {
    super('Another transaction has written the same key.', { cause })
  }
}
