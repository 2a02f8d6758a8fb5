import type { DatabaseSync, SQLOutputValue } from 'node:sqlite'
import { type Clock, type IdSource, systemClock, uuidV4 } from '@skein/base'
import { invalidUse } from '../contract/agent-error.ts'
import type {
  CallRecord,
  CheckpointMetadata,
  FullCheckpointStore,
} from '../contract/checkpoint-store.ts'
import type { AgentStateJSON } from '../state/state-types.ts'
import { checkpointMetadata } from './saved-state.ts'
import { foldJournal } from './fold-journal.ts'
import { checkExpected, decodeVersions, ownCopy, VersionWriter } from './versions.ts'

/** Options of `sqliteCheckpoints`. */
export interface SqliteCheckpointOptions {
  /** The file of the database; `:memory:` keeps it in memory. */
  readonly path: string
  /** Whether to store finished calls, so that a resumed run does not repeat them. Default false. */
  readonly journal?: boolean
  readonly clock?: Clock
  readonly ids?: IdSource
}

/** A store in a database, which can be closed. */
export interface SqliteCheckpoints extends FullCheckpointStore {
  close(): void
}

const SCHEMA = `
  CREATE TABLE IF NOT EXISTS checkpoint_versions (
    session TEXT NOT NULL,
    seq INTEGER NOT NULL,
    base INTEGER NOT NULL,
    checkpoint_id TEXT NOT NULL,
    metadata TEXT NOT NULL,
    body TEXT NOT NULL,
    PRIMARY KEY (session, seq)
  );
  CREATE UNIQUE INDEX IF NOT EXISTS checkpoint_ids ON checkpoint_versions (session, checkpoint_id);
  CREATE TABLE IF NOT EXISTS checkpoint_journal (
    n INTEGER PRIMARY KEY AUTOINCREMENT,
    session TEXT NOT NULL,
    entry TEXT NOT NULL
  );
  CREATE INDEX IF NOT EXISTS checkpoint_journal_sessions ON checkpoint_journal (session);
`

/** How many sessions a store remembers, so that their next version can be written as a change. */
const MAX_WRITERS = 1000

/**
 * Stores checkpoints in a SQLite database of Node, Bun or Deno (`node:sqlite`). Several processes may share the
 * file: a save is one transaction.
 */
export function sqliteCheckpoints(options: SqliteCheckpointOptions): SqliteCheckpoints {
  const { journal = false, clock = systemClock, ids = uuidV4 } = options
  const database = openDatabase(options.path)
  const writers = new Map<string, { readonly writer: VersionWriter; readonly seq: number }>()
  const sql = (text: string) => database.prepare(text)
  const newestRow = sql(
    'SELECT seq, base, metadata FROM checkpoint_versions WHERE session = ? ORDER BY seq DESC LIMIT 1',
  )
  const namedRow = sql(
    'SELECT seq, base, metadata FROM checkpoint_versions WHERE session = ? AND checkpoint_id = ?',
  )
  const chain = sql(
    'SELECT seq = base AS isWhole, body FROM checkpoint_versions WHERE session = ? AND seq BETWEEN ? AND ? ORDER BY seq',
  )
  const insert = sql('INSERT INTO checkpoint_versions VALUES (?, ?, ?, ?, ?, ?)')
  const clearJournal = sql('DELETE FROM checkpoint_journal WHERE session = ?')
  const insertEntry = sql('INSERT INTO checkpoint_journal (session, entry) VALUES (?, ?)')
  const entries = sql('SELECT entry FROM checkpoint_journal WHERE session = ? ORDER BY n')
  const deleteVersions = sql('DELETE FROM checkpoint_versions WHERE session = ?')
  const allMetadata = sql('SELECT metadata FROM checkpoint_versions WHERE session = ? ORDER BY seq')
  const allSessions = sql('SELECT DISTINCT session FROM checkpoint_versions ORDER BY session')

  const stateAt = (sessionId: string, row: Row | undefined): AgentStateJSON | null => {
    if (!row) return null
    const rows = chain.all(sessionId, row['base']!, row['seq']!)
    return decodeVersions(
      rows.map(({ isWhole, body }) => ({
        isWhole: isWhole === 1,
        value: JSON.parse(String(body)) as unknown,
      })),
    )
  }
  return {
    async save(sessionId, given, { expected } = {}) {
      checkSession(sessionId)
      const state = ownCopy(given)
      return transaction(database, () => {
        const newest = newestRow.get(sessionId)
        checkExpected(sessionId, expected, newest && metadataOf(newest))
        const metadata = checkpointMetadata(sessionId, state, { clock, ids })
        const seq = Number(newest?.['seq'] ?? 0) + 1
        const oldWriter = writers.get(sessionId)
        // A change must follow the version that this store object wrote last. If another process has saved
        // since, or if there is no version yet, the next version must be a whole state.
        const writer = oldWriter?.seq === seq - 1 && newest ? oldWriter.writer : new VersionWriter()
        writers.delete(sessionId) // stays deleted if the transaction fails
        const { isWhole, text } = writer.encode(state)
        const base = isWhole ? seq : Number(newest!['base'])
        insert.run(sessionId, seq, base, metadata.checkpointId, JSON.stringify(metadata), text)
        clearJournal.run(sessionId)
        writers.set(sessionId, { writer, seq })
        if (writers.size > MAX_WRITERS) writers.delete(writers.keys().next().value!)
        return metadata
      })
    },
    async load(sessionId) {
      const state = stateAt(sessionId, newestRow.get(sessionId))
      if (!state) return null
      const rows = entries.all(sessionId)
      return foldJournal(
        state,
        rows.map(({ entry }) => JSON.parse(String(entry)) as CallRecord), // written by `record`
      )
    },
    async loadMetadata(sessionId) {
      const row = newestRow.get(sessionId)
      return row ? metadataOf(row) : null
    },
    async loadVersion(sessionId, checkpointId) {
      return stateAt(sessionId, namedRow.get(sessionId, checkpointId))
    },
    async history(sessionId) {
      return allMetadata.all(sessionId).map(metadataOf)
    },
    async delete(sessionId) {
      writers.delete(sessionId)
      transaction(database, () => {
        deleteVersions.run(sessionId)
        clearJournal.run(sessionId)
      })
    },
    async list() {
      return allSessions.all().map(({ session }) => String(session))
    },
    record: journal
      ? async (sessionId, entry) => void insertEntry.run(sessionId, JSON.stringify(entry))
      : undefined,
    close: () => database.close(),
  }
}

type Row = Record<string, SQLOutputValue>

function metadataOf(row: Row): CheckpointMetadata {
  return JSON.parse(String(row['metadata'])) as CheckpointMetadata // written by `save`
}

function checkSession(sessionId: string): void {
  if (typeof sessionId !== 'string' || sessionId === '')
    throw invalidUse('A session id is a non-empty string.')
}

function transaction<T>(database: DatabaseSync, body: () => T): T {
  database.exec('BEGIN IMMEDIATE')
  try {
    const result = body()
    database.exec('COMMIT')
    return result
  } catch (error) {
    database.exec('ROLLBACK')
    throw error
  }
}

function openDatabase(path: string): DatabaseSync {
  interface ProcessLike {
    getBuiltinModule?(
      name: 'node:sqlite',
    ): { readonly DatabaseSync: typeof DatabaseSync } | undefined
  }
  const { process } = globalThis as { process?: ProcessLike }
  const sqlite = process?.getBuiltinModule?.('node:sqlite')
  if (!sqlite)
    throw invalidUse(
      'This platform has no SQLite for checkpoints.',
      'Use fileCheckpoints() or memoryCheckpoints(), or write a CheckpointStore of your own.',
    )
  const database = new sqlite.DatabaseSync(path)
  database.exec('PRAGMA busy_timeout = 5000; PRAGMA journal_mode = WAL; PRAGMA synchronous = FULL;')
  database.exec(SCHEMA)
  return database
}
