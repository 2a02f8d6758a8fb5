import type { DatabaseSync } from 'node:sqlite'
import type { RuntimeEvent } from '../../contract/event.ts'
import { rowSum, unpackText } from './packed-text.ts'
import { fillWaitingRows } from './sqlite-waiting.ts'
import { StoreError } from '../store-error.ts'
import { calledTools } from '../head-from-events.ts'

/** One step that changes the schema from the previous version. Once released, a step is never changed. */
export interface StoreMigration {
  readonly version: number
  readonly sql: string
  /** Fills new tables with what SQL alone cannot compute. Runs after `sql`, in the same transaction. */
  readonly fill?: (database: DatabaseSync) => void
}

/** All steps of the schema, in order; a new database is created by applying all of them. */
export const migrations: readonly StoreMigration[] = [
  {
    version: 1,
    sql: `
CREATE TABLE threads (
  id TEXT PRIMARY KEY NOT NULL,
  tenant TEXT NOT NULL,
  owner TEXT,
  agent TEXT NOT NULL,
  parent_id TEXT,
  root_id TEXT NOT NULL,
  title TEXT,
  tags TEXT NOT NULL,
  client_id TEXT,
  search TEXT NOT NULL,
  lifecycle TEXT NOT NULL,
  waiting INTEGER NOT NULL,
  tokens INTEGER NOT NULL,
  cost_usd REAL NOT NULL,
  created_at INTEGER NOT NULL,
  updated_at INTEGER NOT NULL,
  seq INTEGER NOT NULL,
  epoch INTEGER NOT NULL,
  wake_at INTEGER,
  attempts INTEGER NOT NULL
);
CREATE UNIQUE INDEX threads_by_client_id ON threads (tenant, client_id) WHERE client_id IS NOT NULL;
CREATE INDEX threads_by_activity ON threads (updated_at, id);
CREATE INDEX threads_by_creation ON threads (created_at, id);
CREATE INDEX threads_by_root ON threads (root_id);
CREATE INDEX threads_by_parent ON threads (parent_id) WHERE parent_id IS NOT NULL;
CREATE INDEX threads_by_wake ON threads (wake_at, id) WHERE wake_at IS NOT NULL;
CREATE INDEX threads_waiting ON threads (updated_at, id) WHERE waiting > 0;

CREATE TABLE events (
  thread_id TEXT NOT NULL REFERENCES threads (id) ON DELETE CASCADE,
  seq INTEGER NOT NULL,
  at TEXT NOT NULL,
  type TEXT NOT NULL,
  json TEXT NOT NULL
);
CREATE UNIQUE INDEX events_by_thread ON events (thread_id, seq);

CREATE TABLE blobs (
  hash TEXT PRIMARY KEY NOT NULL,
  bytes BLOB NOT NULL
);
-- Which threads need a blob: it goes when the last of them goes.
CREATE TABLE blob_names (
  thread_id TEXT NOT NULL REFERENCES threads (id) ON DELETE CASCADE,
  hash TEXT NOT NULL,
  PRIMARY KEY (thread_id, hash)
) WITHOUT ROWID;
CREATE INDEX blob_names_by_hash ON blob_names (hash);

CREATE TABLE audit (
  tree TEXT NOT NULL,
  idx INTEGER NOT NULL,
  request_id TEXT NOT NULL,
  seq INTEGER NOT NULL,
  line TEXT NOT NULL
);
CREATE UNIQUE INDEX audit_by_tree ON audit (tree, idx);
CREATE UNIQUE INDEX audit_by_request ON audit (request_id, seq);

CREATE TABLE spent (
  jti TEXT PRIMARY KEY NOT NULL,
  exp INTEGER NOT NULL
) WITHOUT ROWID;

CREATE TABLE settings (
  name TEXT PRIMARY KEY NOT NULL,
  json TEXT NOT NULL
) WITHOUT ROWID;
`,
  },
  {
    version: 2,
    sql: `
-- The events of this version have a new number too (EVENT_VERSION 2), so older programs must not open the file.
-- Checksums (see rowSum): damage inside a text is noticed when the row is read.
ALTER TABLE events ADD COLUMN sum INTEGER NOT NULL DEFAULT 0;
UPDATE events SET sum = row_sum(thread_id, seq, json);
ALTER TABLE audit ADD COLUMN sum INTEGER NOT NULL DEFAULT 0;
UPDATE audit SET sum = row_sum(tree, idx, line);
ALTER TABLE blobs ADD COLUMN sum INTEGER NOT NULL DEFAULT 0;
UPDATE blobs SET sum = row_sum(hash, 0, bytes);

-- A number for each log, so that a fold of a replaced log is recognised.
ALTER TABLE threads ADD COLUMN log_id INTEGER NOT NULL DEFAULT 0;
UPDATE threads SET log_id = rowid;

-- A client id belongs to the owner of its thread, so that one user learns nothing of another's.
DROP INDEX threads_by_client_id;
CREATE UNIQUE INDEX threads_by_client_id ON threads (tenant, client_id, coalesce(owner, ''))
  WHERE client_id IS NOT NULL;

-- Kept with every commit, so that nobody has to count: the last log_id, sums over all threads, and the
-- number of threads of each lifecycle.
CREATE TABLE counters (name TEXT PRIMARY KEY NOT NULL, value REAL NOT NULL) WITHOUT ROWID;
INSERT INTO counters SELECT 'log_id', coalesce(max(log_id), 0) FROM threads;
INSERT INTO counters SELECT 'tokens', total(tokens) FROM threads;
INSERT INTO counters SELECT 'cost_usd', total(cost_usd) FROM threads;
INSERT INTO counters SELECT 'threads ' || lifecycle, count(*) FROM threads GROUP BY lifecycle;

-- The number of requests whose cost is unknown.
ALTER TABLE threads ADD COLUMN unpriced INTEGER NOT NULL DEFAULT 0;

-- Not called owner: the column of that name is the user who owns the thread.
ALTER TABLE threads ADD COLUMN lease_owner TEXT;
ALTER TABLE threads ADD COLUMN lease_until INTEGER;
ALTER TABLE threads ADD COLUMN deaths INTEGER NOT NULL DEFAULT 0;
ALTER TABLE threads ADD COLUMN survived INTEGER NOT NULL DEFAULT 0;
ALTER TABLE threads ADD COLUMN on_trial INTEGER NOT NULL DEFAULT 0;
CREATE INDEX threads_by_lease ON threads (lease_owner) WHERE lease_owner IS NOT NULL;
-- Until version 1 every claim counted as an attempt, so the numbers of that time say nothing about guilt.
UPDATE threads SET attempts = 0;
`,
  },
  {
    version: 3,
    sql: `
-- One key for a log and its numbers, log_id * 2^32 + seq, so that events need neither an index nor the id of
-- their thread. Type and time are in the JSON. Checksums still depend on the id of the thread.
CREATE TABLE log_events (id INTEGER PRIMARY KEY NOT NULL, json TEXT NOT NULL, sum INTEGER NOT NULL);
INSERT INTO log_events SELECT (log_id << 32) | events.seq, json, sum
  FROM events JOIN threads ON threads.id = thread_id ORDER BY 1;
DROP TABLE events;
ALTER TABLE log_events RENAME TO events;

-- The same for audit lines: the number of the tree * 2^32 + the index of the line.
CREATE TABLE audit_trees (key INTEGER PRIMARY KEY NOT NULL, tree TEXT NOT NULL UNIQUE);
INSERT INTO audit_trees (tree) SELECT DISTINCT tree FROM audit ORDER BY tree;
CREATE TABLE audit_lines (
  id INTEGER PRIMARY KEY NOT NULL,
  request_id TEXT NOT NULL,
  seq INTEGER NOT NULL,
  line TEXT NOT NULL,
  sum INTEGER NOT NULL
);
INSERT INTO audit_lines SELECT (key << 32) | idx, request_id, seq, line, sum
  FROM audit JOIN audit_trees USING (tree) ORDER BY 1;
DROP TABLE audit;
ALTER TABLE audit_lines RENAME TO audit;
CREATE UNIQUE INDEX audit_by_request ON audit (request_id, seq);
`,
  },
  {
    version: 4,
    sql: `
-- Values that belong to a user and not to a thread. Versions are numbered over all users and never reused.
CREATE TABLE user_values (
  tenant TEXT NOT NULL,
  user TEXT NOT NULL,
  key TEXT NOT NULL,
  json TEXT NOT NULL,
  version INTEGER NOT NULL,
  updated_at TEXT NOT NULL,
  sum INTEGER NOT NULL,
  PRIMARY KEY (tenant, user, key)
) WITHOUT ROWID;
INSERT INTO counters (name, value) VALUES ('user_version', 0);
`,
  },
  {
    version: 5,
    sql: `
-- Where other nodes reach the owner of a lease.
ALTER TABLE threads ADD COLUMN lease_address TEXT;
`,
  },
  {
    version: 6,
    sql: `
-- What lists show of a thread besides its labels. Threads of earlier versions have no first words.
ALTER TABLE threads ADD COLUMN first_words TEXT;
ALTER TABLE threads ADD COLUMN output_tokens INTEGER NOT NULL DEFAULT 0;
ALTER TABLE threads ADD COLUMN cached_tokens INTEGER NOT NULL DEFAULT 0;
ALTER TABLE threads ADD COLUMN forked_from TEXT;
ALTER TABLE threads ADD COLUMN forked_at TEXT;
CREATE INDEX threads_by_fork ON threads (forked_from) WHERE forked_from IS NOT NULL;

-- Orders the latest changes of threads. The counter keeps the last number over the removal of its thread.
ALTER TABLE threads ADD COLUMN change INTEGER NOT NULL DEFAULT 0;
CREATE INDEX threads_by_change ON threads (tenant, change, id);
INSERT INTO counters (name, value) VALUES ('change', 0);
`,
  },
  {
    version: 7,
    sql: `
-- From this version on, events and audit lines are packed (see packed-text.ts) and stored as bytes; those of
-- earlier versions stay texts. The checksum is that of what is stored.
-- Parts of folds of long logs, with the key log_id * 2^32 + place. They have checksums of their own inside, and
-- may be deleted at any time.
CREATE TABLE snapshots (id INTEGER PRIMARY KEY NOT NULL, bytes BLOB NOT NULL);
`,
  },
  {
    version: 8,
    sql: `
-- The tools that the models of a thread have called, as a list for its head and as rows to search. The triggers keep
-- both the same; the rows of a thread go with it. The calls of earlier versions are read from the logs.
ALTER TABLE threads ADD COLUMN tools TEXT NOT NULL DEFAULT '[]';
CREATE TABLE thread_tools (
  tool TEXT NOT NULL, thread_id TEXT NOT NULL REFERENCES threads (id) ON DELETE CASCADE, root_id TEXT NOT NULL,
  PRIMARY KEY (tool, thread_id)
) WITHOUT ROWID;
CREATE INDEX thread_tools_by_thread ON thread_tools (thread_id);
CREATE TRIGGER thread_tools_added AFTER INSERT ON threads WHEN NEW.tools <> '[]' BEGIN
  INSERT INTO thread_tools SELECT value, NEW.id, NEW.root_id FROM json_each(NEW.tools);
END;
CREATE TRIGGER thread_tools_changed AFTER UPDATE OF tools ON threads WHEN NEW.tools <> OLD.tools BEGIN
  DELETE FROM thread_tools WHERE thread_id = NEW.id;
  INSERT INTO thread_tools SELECT value, NEW.id, NEW.root_id FROM json_each(NEW.tools);
END;
UPDATE threads SET tools = (
  SELECT json_group_array(DISTINCT called.value) FROM events, json_each(called_tools(events.json)) called
  WHERE events.id > threads.log_id << 32 AND events.id < (threads.log_id + 1) << 32
);

-- When the last standing grant of a thread ends. Grants end within a day, so those of earlier versions are left out.
ALTER TABLE threads ADD COLUMN granted_until INTEGER;
CREATE INDEX threads_by_grant ON threads (granted_until) WHERE granted_until IS NOT NULL;
`,
  },
  {
    version: 9,
    sql: `
-- Lists are of one tenant, so the tenant comes first. The indexes of sets (a tree, a parent, the forks of a thread) leave
-- out the time of the last activity, which changes with every commit. Threads at work (queued, running) have no index,
-- because every turn would write it three times; they are found among the latest activity.
DROP INDEX threads_by_activity;
DROP INDEX threads_by_creation;
DROP INDEX threads_by_root;
DROP INDEX threads_by_parent;
DROP INDEX threads_waiting;
CREATE INDEX threads_by_activity ON threads (tenant, updated_at, id);
CREATE INDEX threads_by_owner ON threads (tenant, owner, updated_at, id) WHERE owner IS NOT NULL;
CREATE INDEX threads_waiting ON threads (tenant, updated_at, id) WHERE waiting > 0;
CREATE INDEX threads_by_lifecycle ON threads (tenant, lifecycle, updated_at, id)
  WHERE lifecycle IN ('waiting', 'stopped', 'failed', 'terminated', 'erased');
CREATE INDEX threads_by_creation ON threads (tenant, created_at, id);
CREATE INDEX threads_by_root ON threads (root_id, created_at, id);
CREATE INDEX threads_by_parent ON threads (parent_id, created_at, id) WHERE parent_id IS NOT NULL;
CREATE INDEX thread_tools_by_root ON thread_tools (tool, root_id);

-- The tags of threads as rows to search. The triggers keep them like the list in the row of the thread.
CREATE TABLE thread_tags (
  tenant TEXT NOT NULL, tag TEXT NOT NULL, thread_id TEXT NOT NULL REFERENCES threads (id) ON DELETE CASCADE,
  PRIMARY KEY (tenant, tag, thread_id)
) WITHOUT ROWID;
CREATE INDEX thread_tags_by_thread ON thread_tags (thread_id);
CREATE TRIGGER thread_tags_added AFTER INSERT ON threads WHEN NEW.tags <> '[]' BEGIN
  INSERT OR IGNORE INTO thread_tags SELECT NEW.tenant, value, NEW.id FROM json_each(NEW.tags);
END;
CREATE TRIGGER thread_tags_changed AFTER UPDATE OF tags ON threads
  WHEN NEW.tags <> OLD.tags AND json_valid(NEW.tags) BEGIN
  DELETE FROM thread_tags WHERE thread_id = NEW.id;
  INSERT OR IGNORE INTO thread_tags SELECT NEW.tenant, value, NEW.id FROM json_each(NEW.tags);
END;
INSERT OR IGNORE INTO thread_tags
  SELECT tenant, value, threads.id FROM threads, json_each(CASE WHEN json_valid(tags) THEN tags ELSE '[]' END);

-- The questions that wait for people and clients, written with the events that open and close them.
CREATE TABLE waiting (
  thread_id TEXT NOT NULL REFERENCES threads (id) ON DELETE CASCADE,
  interrupt_id TEXT NOT NULL,
  subject TEXT NOT NULL,
  kind TEXT NOT NULL,
  opened_at INTEGER NOT NULL,
  until INTEGER,
  tenant TEXT NOT NULL,
  owner TEXT,
  agent TEXT NOT NULL,
  root_id TEXT NOT NULL,
  PRIMARY KEY (thread_id, interrupt_id)
) WITHOUT ROWID;
CREATE INDEX waiting_by_time ON waiting (opened_at, thread_id, interrupt_id);
CREATE INDEX waiting_by_tenant ON waiting (tenant, opened_at, thread_id, interrupt_id);
CREATE INDEX waiting_by_owner ON waiting (tenant, owner, opened_at, thread_id, interrupt_id);
CREATE INDEX waiting_by_agent ON waiting (tenant, agent, opened_at, thread_id, interrupt_id);
CREATE INDEX waiting_by_kind ON waiting (tenant, kind, opened_at, thread_id, interrupt_id);
CREATE INDEX waiting_by_root ON waiting (root_id, opened_at, thread_id, interrupt_id);
CREATE INDEX waiting_by_id ON waiting (interrupt_id, opened_at, thread_id);
`,
    fill: fillWaitingRows,
  },
]

/** The application id that identifies our database files ("skei"). */
const APPLICATION_ID = 0x73_6b_65_69

/** Migrates a database to the newest version. Each step is applied completely or not at all. */
export function migrate(
  database: DatabaseSync,
  path: string,
  steps: readonly StoreMigration[] = migrations,
): void {
  const newest = steps.at(-1)?.version ?? 0
  const version = checkOwn(database, path, newest)
  if (version >= newest) return
  database.function('row_sum', { deterministic: true }, (key, number, content) =>
    rowSum(String(key), Number(number), content as string | Uint8Array),
  )
  // An SQL function that returns the names of the tools that a stored event calls, as a JSON list.
  database.function('called_tools', { deterministic: true }, (content) => {
    try {
      const text = unpackText(content as string | Uint8Array)
      if (!text.startsWith('{"type":"message_added"')) return '[]'
      return JSON.stringify(calledTools([], [JSON.parse(text) as RuntimeEvent]))
    } catch {
      return '[]' // a damaged event is reported when it is read, or by `skein store verify`
    }
  })
  for (const step of steps) if (step.version > version) apply(database, step)
}

/** Throws unless the database is a store of the newest version, for code that must not migrate it. */
export function checkStoreVersion(database: DatabaseSync, path: string): void {
  const newest = migrations.at(-1)?.version ?? 0
  const version = checkOwn(database, path, newest)
  if (version === newest) return
  throw new StoreError(`The store ${path} has version ${version}, not ${newest}.`, {
    code: 'STORE_VERSION',
    hint: 'Open it once with this program, which brings it up to date.',
  })
}

/** Returns the version of a store; throws for a later version, and for a database of another program. */
function checkOwn(database: DatabaseSync, path: string, newest: number): number {
  const version = pragma(database, 'user_version')
  if (version > newest)
    throw new StoreError(
      `The store ${path} has version ${version}; this program knows ${newest}.`,
      {
        code: 'STORE_VERSION',
        hint: 'A newer version of the program has used it. Update, or open a backup from before.',
      },
    )
  const hasTables = database.prepare('SELECT 1 FROM sqlite_schema LIMIT 1').get() !== undefined
  if ((version > 0 || hasTables) && pragma(database, 'application_id') !== APPLICATION_ID)
    throw new StoreError(`${path} is a database of another program.`, {
      code: 'STORE_CORRUPT',
      hint: 'Choose another path for the store.',
    })
  return version
}

function apply(database: DatabaseSync, { version, sql, fill }: StoreMigration): void {
  database.exec('BEGIN IMMEDIATE')
  try {
    database.exec(sql)
    fill?.(database)
    database.exec(`PRAGMA application_id = ${APPLICATION_ID}`)
    database.exec(`PRAGMA user_version = ${version}`)
    database.exec('COMMIT')
  } catch (error) {
    if (database.isTransaction) database.exec('ROLLBACK')
    throw error
  }
}

function pragma(database: DatabaseSync, name: 'user_version' | 'application_id'): number {
  return Number(database.prepare(`PRAGMA ${name}`).get()?.[name] ?? 0)
}
