import { createHash } from 'node:crypto'
import type { Writable } from 'node:stream'
import { StoreError } from '@skein/runtime'
import pg from 'pg'
import { isConflict, isLost, storeFailure } from './errors.ts'

/** A value of a statement. */
export type Value = string | number | boolean | null | Uint8Array | readonly (string | number)[]

/** One SQL statement. Its text is always the same, so that the server can keep its plan. */
export interface Statement {
  readonly text: string
  readonly values?: readonly Value[]
  /** Whether the text has several statements, or is used only once: it is then not kept as a prepared statement. */
  readonly isScript?: boolean
}

/** A row as the server returns it, with bigint as number: all numbers of the store are below 2^53. */
export type DatabaseRow = Readonly<Record<string, unknown>>

/** Sends statements together and returns the rows of each; throws the first error. */
export type SendStatements = (
  statements: readonly Statement[],
) => Promise<readonly [DatabaseRow[], ...DatabaseRow[][]]>

/** Options of `Connections`. */
export interface ConnectionOptions {
  /** The address of the database, `postgres://user:password@host:port/database`. */
  readonly connectionString?: string
  /** A pool of the caller; closing the store leaves it open. Create it with `pipeline` (see the manual). */
  readonly pool?: pg.Pool
  /** The largest number of connections of the store's own pool. Default 10. */
  readonly maxConnections?: number
  /**
   * Whether a transaction pooler such as pgbouncer is in between. Nothing may then outlive a
   * transaction, so statements are not prepared under names. Default false.
   */
  readonly isPooled?: boolean
  /** How long reads and writes are tried again while the server cannot be reached. Default 15 s. */
  readonly retryMs?: number
  /** How long a statement may take before its connection counts as lost. Default 30 s. */
  readonly timeoutMs?: number
}

export const types: pg.CustomTypesConfig = {
  getTypeParser: (oid: number, format?: string) =>
    oid === 20 ? Number : (pg.types.getTypeParser(oid, format as 'text') as never),
}

/** Runs statements on a pool of connections, and repeats those that failed for a temporary reason. */
export class Connections {
  readonly #pool: pg.Pool
  readonly #isOwn: boolean
  readonly #isPooled: boolean
  readonly #retryMs: number
  readonly #names = new Map<string, string>()
  #isClosed = false
  /** The number of round trips: how often statements were sent and their answers received. */
  roundTrips = 0

  constructor(options: ConnectionOptions) {
    const { pool, isPooled = false, retryMs = 15_000 } = options
    this.#pool = pool ?? newPool(options)
    this.#isOwn = pool === undefined
    this.#isPooled = isPooled
    this.#retryMs = retryMs
    surviveBrokenConnections(this.#pool)
  }

  /** Runs one statement by itself. If its connection breaks, the statement may run twice, so it must be repeatable. */
  async query(text: string, values: readonly Value[] = []): Promise<DatabaseRow[]> {
    return this.retrying(() =>
      this.#withClient(async (client) => (await this.#send(client, [{ text, values }]))[0]),
    )
  }

  /** Like `query`, for a statement that is used only once. */
  async queryOnce(text: string, values: readonly Value[] = []): Promise<DatabaseRow[]> {
    return this.retrying(() =>
      this.#withClient(
        async (client) => (await this.#send(client, [{ text, values, isScript: true }]))[0],
      ),
    )
  }

  /** Runs a transaction, which may be repeated as a whole. `work` sends BEGIN and COMMIT itself. */
  transaction<T>(work: (run: SendStatements) => Promise<T>): Promise<T> {
    return this.retrying(() => this.once(work))
  }

  /**
   * Runs a transaction once. If it fails, its connection is closed, which also rolls it back; so no
   * connection of the pool is ever inside a transaction.
   */
  once<T>(work: (run: SendStatements) => Promise<T>): Promise<T> {
    return this.#withClient((client) => work((statements) => this.#send(client, statements)))
  }

  /** Repeats the work until it succeeds, fails for a permanent reason, or has failed for too long. */
  async retrying<T>(work: () => Promise<T>): Promise<T> {
    const until = performance.now() + this.#retryMs
    for (let attempt = 0; ; attempt++) {
      this.mustBeOpen()
      try {
        return await work()
      } catch (error) {
        const isPassing = isConflict(error) || isLost(error)
        if (!isPassing || this.#isClosed || performance.now() > until) throw storeFailure(error)
        await pause(attempt, isConflict(error))
      }
    }
  }

  async close(): Promise<void> {
    if (this.#isClosed) return
    this.#isClosed = true
    if (this.#isOwn) await this.#pool.end()
  }

  mustBeOpen(): void {
    if (this.#isClosed) throw new StoreError('The store is closed.', { code: 'STORE_CLOSED' })
  }

  async #withClient<T>(work: (client: pg.PoolClient) => Promise<T>): Promise<T> {
    const client = await this.#pool.connect()
    // A connection that breaks while in use emits an error too, besides failing its statements;
    // unheard, it ends the process.
    let cause: unknown
    const onError = (error: unknown): void => void (cause = error)
    client.on('error', onError)
    try {
      const value = await work(client)
      client.off('error', onError)
      client.release(cause !== undefined)
      return value
    } catch (error) {
      client.release(true)
      throw error
    }
  }

  async #send(
    client: pg.PoolClient,
    statements: readonly Statement[],
  ): Promise<readonly [DatabaseRow[], ...DatabaseRow[][]]> {
    this.roundTrips += 1
    const send = ({ text, values, isScript }: Statement): Promise<pg.QueryResult<DatabaseRow>> =>
      client.query<DatabaseRow>({
        text,
        types,
        values: values as unknown[] | undefined,
        // A statement without values is sent as plain text, which may contain several statements.
        name: isScript || this.#isPooled || !values ? undefined : this.#nameOf(text),
      } as pg.QueryConfig)
    const results: DatabaseRow[][] = []
    if (isPipelined(client)) {
      // All statements are sent with one write. Otherwise the client would write each one, and wake the
      // server each time.
      const stream = streamOf(client)
      stream?.cork?.()
      const answers = statements.map(send)
      stream?.uncork?.()
      const outcomes = await Promise.allSettled(answers)
      // The first failure is the cause of those that follow it in the same transaction.
      for (const outcome of outcomes)
        if (outcome.status === 'rejected') throw outcome.reason
        else results.push(outcome.value.rows ?? [])
    } else {
      this.roundTrips += statements.length - 1
      for (const statement of statements) results.push((await send(statement)).rows ?? [])
    }
    return results as [DatabaseRow[], ...DatabaseRow[][]]
  }

  #nameOf(text: string): string {
    let name = this.#names.get(text)
    if (name === undefined) {
      // The name is a hash of the text, because stores that share a pool also share its prepared statements.
      name = `skein_${createHash('sha256').update(text).digest('base64url').slice(0, 32)}`
      this.#names.set(text, name)
    }
    return name
  }
}

function isPipelined(client: pg.PoolClient): boolean {
  return (client as { readonly pipeline?: boolean }).pipeline === true
}

/** Returns the client's socket, if it can hold writes back (`cork`). */
function streamOf(client: pg.PoolClient): Partial<Pick<Writable, 'cork' | 'uncork'>> | undefined {
  return (client as { readonly connection?: { readonly stream?: Writable } }).connection?.stream
}

const surviving = new WeakSet<pg.Pool>()

/** Keeps the process alive when unused connections break. Several stores may share the pool of a caller. */
export function surviveBrokenConnections(pool: pg.Pool): void {
  if (surviving.has(pool)) return
  surviving.add(pool)
  // An idle connection that breaks is removed from the pool; the next statement opens another.
  pool.on('error', () => {})
  // A server may end in the moment when a connection is ready, before anybody has it: that would end the process.
  pool.on('connect', (client) => client.on('error', () => {}))
}

function newPool(options: ConnectionOptions): pg.Pool {
  const { connectionString, maxConnections = 10, timeoutMs = 30_000 } = options
  // `pipeline` is not in the types of pg yet; the pool passes it on to each client.
  const config: pg.PoolConfig & { readonly pipeline: boolean } = {
    connectionString,
    max: maxConnections,
    pipeline: true,
    keepAlive: true,
    application_name: 'skein',
    connectionTimeoutMillis: 10_000,
    query_timeout: timeoutMs,
  }
  return new pg.Pool(config)
}

/** Waits before another attempt: 5 ms for a conflict, 50 ms otherwise, doubled up to 1 s, with jitter. */
function pause(attempt: number, isShort: boolean): Promise<void> {
  const longest = Math.min((isShort ? 5 : 50) * 2 ** Math.min(attempt, 8), 1000)
  const ms = longest * (0.5 + Math.random() / 2)
  return new Promise((resolve) => setTimeout(resolve, ms))
}
