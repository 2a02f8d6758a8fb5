import { encodeBase64 } from '@skein/base'
import type { Blob } from '@skein/runtime'
import type { Connections, SendStatements, Statement } from './connections.ts'
import { insertStatements } from './insert-statements.ts'

/**
 * Storage for blobs that are too large for a database, e.g. an object store. A blob is written before
 * the commit that refers to it. Blobs to which no commit refers are deleted after `keepMs`, so a blob
 * whose commit was refused stays for a while. Every method may be called again with the same arguments.
 */
export interface BlobStore {
  /** Writes a blob; resolves when it is durable. */
  put(hash: string, bytes: Uint8Array): Promise<void>
  get(hash: string): Promise<Uint8Array | undefined>
  /** Deletes blobs; hashes that do not exist are ignored. */
  delete(hashes: readonly string[]): Promise<void>
}

/** How long a blob to which no commit refers is kept, because its commit may still be under way. */
const KEEP_MS = 3_600_000
const CHUNK_BYTES = 1024 * 1024
/**
 * If the blobs of a commit have at most this many bytes together, they are sent with its other rows, in one statement.
 */
const SHORT_BYTES = 64 * 1024

/**
 * The blobs of a store. By default they are rows of 1 MiB, written in the transaction of their commit
 * before that locks the rows of threads. With a `BlobStore` they are written before the transaction.
 */
export class Blobs {
  readonly #s: string
  readonly #connections: Connections
  readonly #outside: BlobStore | undefined

  constructor(s: string, connections: Connections, outside: BlobStore | undefined) {
    this.#s = s
    this.#connections = connections
    this.#outside = outside
  }

  /**
   * Writes blobs outside of the database. A row for each keeps `sweep` from deleting the blob before
   * its commit.
   */
  async putOutside(blobs: readonly Blob[]): Promise<void> {
    if (!this.#outside) return
    for (const { hash, bytes } of inOrder(blobs)) {
      await this.#connections.query(
        `INSERT INTO ${this.#s}.blobs (hash, size, written_at, is_stored)
        VALUES ($1, $2, clock_timestamp(), false)
        ON CONFLICT (hash) DO UPDATE SET written_at = excluded.written_at`,
        [hash, bytes.length],
      )
      await this.#outside.put(hash, bytes)
    }
  }

  /** Whether blobs have to be written by `putOutside` and `putInside`, and not by `putting`. */
  areLong(blobs: readonly Blob[]): boolean {
    if (blobs.length === 0) return false
    const bytes = blobs.reduce((sum, blob) => sum + blob.bytes.length, 0)
    return this.#outside !== undefined || bytes > SHORT_BYTES
  }

  /** Returns the statement that writes short blobs; `putInside` writes longer ones. */
  putting(blobs: readonly Blob[]): Statement[] {
    const own = inOrder(blobs)
    if (own.length === 0) return []
    return [
      {
        text: `WITH given AS (
            SELECT hash, decode(text, 'base64') AS bytes FROM unnest($1::text[], $2::text[]) AS g (hash, text)
          ), named AS (
            INSERT INTO ${this.#s}.blobs AS old (hash, size, written_at, is_stored)
            SELECT hash, length(bytes), clock_timestamp(), true FROM given ORDER BY hash COLLATE "C"
            ON CONFLICT (hash) DO UPDATE SET is_stored = true
            RETURNING hash, (xmax = 0) AS is_new)
          INSERT INTO ${this.#s}.blob_chunks (hash, number, bytes)
          SELECT hash, 0, bytes FROM named JOIN given USING (hash) WHERE is_new AND length(bytes) > 0`,
        values: [own.map(({ hash }) => hash), own.map(({ bytes }) => encodeBase64(bytes))],
      },
    ]
  }

  /**
   * Writes blobs in the transaction of their commit. If a blob exists already, its row is locked, so
   * that a concurrent erasure sees that this commit refers to the blob.
   */
  async putInside(run: SendStatements, blobs: readonly Blob[]): Promise<void> {
    const own = inOrder(blobs)
    const rows = await run(
      own.map(({ hash, bytes }) => ({
        text: `INSERT INTO ${this.#s}.blobs AS old (hash, size, written_at, is_stored)
          VALUES ($1, $2, clock_timestamp(), true)
          ON CONFLICT (hash) DO UPDATE SET is_stored = true
          RETURNING (xmax = 0) AS is_new`,
        values: [hash, bytes.length],
      })),
    )
    if (this.#outside) return
    for (const [index, { hash, bytes }] of own.entries()) {
      if (rows[index]?.[0]?.['is_new'] !== true) continue
      for (let at = 0; at < bytes.length; at += CHUNK_BYTES)
        await run(
          insertStatements(
            `${this.#s}.blob_chunks`,
            ['hash', 'number', 'bytes'],
            [[hash, at / CHUNK_BYTES, bytes.subarray(at, at + CHUNK_BYTES)]],
          ),
        )
    }
  }

  async read(hash: string): Promise<Uint8Array | undefined> {
    const s = this.#s
    const [row] = await this.#connections.query(
      `SELECT size, (SELECT bytes FROM ${s}.blob_chunks c WHERE c.hash = b.hash AND number = 0) AS bytes
      FROM ${s}.blobs b WHERE hash = $1 AND is_stored`,
      [hash],
    )
    if (!row) return undefined
    if (this.#outside) return this.#outside.get(hash)
    const all = new Uint8Array(row['size'] as number)
    if (row['bytes']) all.set(row['bytes'] as Uint8Array)
    for (let at = CHUNK_BYTES; at < all.length; at += CHUNK_BYTES) {
      const [chunk] = await this.#connections.query(
        `SELECT bytes FROM ${s}.blob_chunks WHERE hash = $1 AND number = $2`,
        [hash, at / CHUNK_BYTES],
      )
      if (!chunk) return undefined // erased in the meantime
      all.set(chunk['bytes'] as Uint8Array, at)
    }
    return all
  }

  /**
   * Returns the statements that remove the references of a thread to blobs, and delete the blobs to which no other
   * thread refers. The rows are locked before the references are counted: a commit that adds a reference is either
   * counted, or waits and then writes the blob again. `kept` are the blobs that the thread still needs.
   */
  endNames(threadId: string, kept: readonly string[]): Statement[] {
    const s = this.#s
    const own = `(SELECT hash FROM ${s}.blob_names WHERE thread_id = $1 AND hash <> ALL($2))`
    const isUnnamed = `hash IN ${own} AND NOT EXISTS (
      SELECT 1 FROM ${s}.blob_names n WHERE n.hash = b.hash AND n.thread_id <> $1)`
    const values = [threadId, kept]
    return [
      {
        text: `SELECT 1 FROM ${s}.blobs WHERE hash IN ${own} ORDER BY hash FOR UPDATE`,
        values,
      },
      ...(this.#outside
        ? [{ text: `UPDATE ${s}.blobs b SET is_stored = false WHERE ${isUnnamed}`, values }]
        : [
            { text: `DELETE FROM ${s}.blob_chunks b WHERE ${isUnnamed}`, values },
            { text: `DELETE FROM ${s}.blobs b WHERE ${isUnnamed}`, values },
          ]),
      { text: `DELETE FROM ${s}.blob_names WHERE thread_id = $1 AND hash <> ALL($2)`, values },
      ...insertStatements(
        `${s}.blob_names`,
        ['thread_id', 'hash'],
        [...new Set(kept)].map((hash) => [threadId, hash]),
        'ON CONFLICT DO NOTHING',
      ),
    ]
  }

  /** Deletes blobs outside of the database to which no commit has referred for `keepMs`; returns how many. */
  async sweep(keepMs: number = KEEP_MS): Promise<number> {
    const outside = this.#outside
    if (!outside) return 0
    let count = 0
    for (;;) {
      // The rows stay locked while the blobs are deleted, so that a commit that writes one of them again has to wait.
      const removals = await this.#connections.transaction(async (run) => {
        const [, rows = []] = await run([
          { text: 'BEGIN' },
          {
            text: `SELECT hash FROM ${this.#s}.blobs WHERE NOT is_stored
              AND written_at < clock_timestamp() - $1 * interval '1 millisecond'
              ORDER BY hash LIMIT 100 FOR UPDATE SKIP LOCKED`,
            values: [keepMs],
          },
        ])
        const hashes = rows.map((row) => row['hash'] as string)
        if (hashes.length > 0) await outside.delete(hashes)
        await run([
          { text: `DELETE FROM ${this.#s}.blobs WHERE hash = ANY($1)`, values: [hashes] },
          { text: 'COMMIT' },
        ])
        return hashes.length
      })
      count += removals
      if (removals < 100) return count
    }
  }
}

/** Sorts by hash and removes duplicates, so that all transactions lock the rows of blobs in the same order. */
function inOrder(blobs: readonly Blob[]): Blob[] {
  const byHash = new Map<string, Blob>()
  for (const blob of blobs) if (!byHash.has(blob.hash)) byHash.set(blob.hash, blob)
  return [...byHash.values()].sort((a, b) => (a.hash < b.hash ? -1 : 1))
}
