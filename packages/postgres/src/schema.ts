import { StoreError } from '@skein/runtime'
import { checkServer } from './check-server.ts'
import type { Connections, SendStatements } from './connections.ts'
import { quoted } from './quoted.ts'
import { fillWaitingTable } from './waiting.ts'

/** One step that changes the schema from the previous version. Once released, a step is never changed. */
interface Migration {
  readonly version: number
  /** Returns the statements; `s` is the quoted name of the schema. */
  readonly sql: (s: string) => string
  /** Fills new tables with what SQL alone cannot compute. Runs after `sql`, in the same transaction. */
  readonly fill?: (run: SendStatements, s: string) => Promise<void>
}

/** The sums over all threads are spread over this many rows, so that commits do not wait for one another. */
const TOTAL_ROWS = 64

/**
 * All steps of the schema. Texts are compared byte by byte (`COLLATE "C"`), as in the other stores. Events
 * are `text` and not `jsonb`: `jsonb` would change their bytes, and it refuses escaped NUL characters.
 */
const migrations: readonly Migration[] = [
  {
    version: 1,
    sql: (s) => `
CREATE SEQUENCE ${s}.log_ids;
CREATE SEQUENCE ${s}.user_versions;

-- The row of a thread changes with every commit; the free space lets it stay on its page.
CREATE TABLE ${s}.threads (
  id text COLLATE "C" PRIMARY KEY,
  tenant text COLLATE "C" NOT NULL,
  parent_id text COLLATE "C",
  root_id text COLLATE "C" NOT NULL,
  client_id text COLLATE "C",
  created_at bigint NOT NULL,
  owner text COLLATE "C",
  agent text COLLATE "C" NOT NULL,
  title text COLLATE "C",
  tags jsonb NOT NULL,
  first_words text COLLATE "C",
  forked_from text COLLATE "C",
  forked_at text COLLATE "C",
  search text COLLATE "C" NOT NULL,
  lifecycle text COLLATE "C" NOT NULL,
  waiting int NOT NULL,
  tokens double precision NOT NULL,
  output_tokens double precision NOT NULL,
  cached_tokens double precision NOT NULL,
  cost_usd double precision NOT NULL,
  unpriced int NOT NULL,
  updated_at bigint NOT NULL,
  seq int NOT NULL,
  change bigint NOT NULL,
  log_id bigint NOT NULL,
  epoch bigint NOT NULL,
  wake_at bigint,
  attempts int NOT NULL,
  lease_owner text COLLATE "C",
  lease_until bigint,
  deaths int NOT NULL,
  survived int NOT NULL,
  on_trial boolean NOT NULL,
  lease_address text COLLATE "C"
) WITH (fillfactor = 75);
CREATE UNIQUE INDEX threads_by_client_id ON ${s}.threads (tenant, client_id, owner)
  NULLS NOT DISTINCT WHERE client_id IS NOT NULL;
CREATE INDEX threads_by_activity ON ${s}.threads (tenant, updated_at, id);
CREATE INDEX threads_by_owner ON ${s}.threads (tenant, owner, updated_at, id) WHERE owner IS NOT NULL;
CREATE INDEX threads_by_creation ON ${s}.threads (created_at, id);
CREATE INDEX threads_by_root ON ${s}.threads (root_id, created_at, id);
CREATE INDEX threads_by_parent ON ${s}.threads (parent_id) WHERE parent_id IS NOT NULL;
CREATE INDEX threads_by_wake ON ${s}.threads (wake_at) WHERE wake_at IS NOT NULL;
CREATE INDEX threads_by_turn ON ${s}.threads (tenant, wake_at, id) WHERE wake_at IS NOT NULL;
CREATE INDEX threads_waiting ON ${s}.threads (tenant, updated_at, id) WHERE waiting > 0;
CREATE INDEX threads_by_change ON ${s}.threads (tenant, change, id);
CREATE INDEX threads_by_fork ON ${s}.threads (forked_from) WHERE forked_from IS NOT NULL;
CREATE INDEX threads_by_lease ON ${s}.threads (lease_owner) WHERE lease_owner IS NOT NULL;

CREATE TABLE ${s}.events (
  log_id bigint NOT NULL,
  seq int NOT NULL,
  json text COLLATE "C" NOT NULL,
  PRIMARY KEY (log_id, seq)
);

-- Parts of folds of long logs, which may be deleted at any time.
CREATE TABLE ${s}.snapshots (
  log_id bigint NOT NULL,
  place int NOT NULL,
  bytes bytea NOT NULL,
  PRIMARY KEY (log_id, place)
);

-- is_stored: a commit has named the content. Contents that none has named are swept by the time of their writing.
CREATE TABLE ${s}.blobs (
  hash text COLLATE "C" PRIMARY KEY,
  size bigint NOT NULL,
  written_at timestamptz NOT NULL,
  is_stored boolean NOT NULL
);
CREATE INDEX blobs_unstored ON ${s}.blobs (written_at) WHERE NOT is_stored;
CREATE TABLE ${s}.blob_chunks (
  hash text COLLATE "C" NOT NULL,
  number int NOT NULL,
  bytes bytea NOT NULL,
  PRIMARY KEY (hash, number)
);
ALTER TABLE ${s}.blob_chunks ALTER COLUMN bytes SET STORAGE EXTERNAL;
-- Which threads need a blob: it goes when the last of them goes.
CREATE TABLE ${s}.blob_names (
  thread_id text COLLATE "C" NOT NULL,
  hash text COLLATE "C" NOT NULL,
  PRIMARY KEY (thread_id, hash)
);
CREATE INDEX blob_names_by_hash ON ${s}.blob_names (hash);

CREATE TABLE ${s}.audit_trees (
  tree text COLLATE "C" PRIMARY KEY,
  key bigint GENERATED ALWAYS AS IDENTITY,
  length int NOT NULL DEFAULT 0
);
CREATE TABLE ${s}.audit (
  tree_key bigint NOT NULL,
  number int NOT NULL,
  request_id text COLLATE "C" NOT NULL,
  seq int NOT NULL,
  line text COLLATE "C" NOT NULL,
  PRIMARY KEY (tree_key, number)
);
CREATE UNIQUE INDEX audit_by_request ON ${s}.audit (request_id, seq);

CREATE TABLE ${s}.spent (jti text COLLATE "C" PRIMARY KEY, exp bigint NOT NULL);
CREATE TABLE ${s}.settings (name text COLLATE "C" PRIMARY KEY, json text COLLATE "C" NOT NULL);
CREATE TABLE ${s}.counters (
  name text COLLATE "C" PRIMARY KEY,
  value double precision NOT NULL
) WITH (fillfactor = 50);
CREATE TABLE ${s}.user_values (
  tenant text COLLATE "C" NOT NULL,
  user_id text COLLATE "C" NOT NULL,
  key text COLLATE "C" NOT NULL,
  json text COLLATE "C" NOT NULL,
  version bigint NOT NULL,
  updated_at text COLLATE "C" NOT NULL,
  PRIMARY KEY (tenant, user_id, key)
);

-- Sums over all threads. A commit adds to any row that no other commit has locked; readers add up all rows.
CREATE TABLE ${s}.totals (
  part int PRIMARY KEY,
  idle bigint NOT NULL DEFAULT 0,
  queued bigint NOT NULL DEFAULT 0,
  running bigint NOT NULL DEFAULT 0,
  waiting bigint NOT NULL DEFAULT 0,
  stopped bigint NOT NULL DEFAULT 0,
  failed bigint NOT NULL DEFAULT 0,
  terminated bigint NOT NULL DEFAULT 0,
  erased bigint NOT NULL DEFAULT 0,
  tokens double precision NOT NULL DEFAULT 0,
  cost_usd double precision NOT NULL DEFAULT 0
) WITH (fillfactor = 50);
INSERT INTO ${s}.totals (part) SELECT generate_series(0, ${TOTAL_ROWS - 1});

-- One row per lane of a node (see commits.ts); its number says which transaction of the lane was committed last.
CREATE TABLE ${s}.lanes (
  name text COLLATE "C" PRIMARY KEY,
  number bigint NOT NULL,
  used_at timestamptz NOT NULL
) WITH (fillfactor = 50);

-- The second wall between tenants, for roles other than the owner of the tables (see tenantAccessSql): they see
-- the rows of the tenant that the setting skein.tenant names, and no rows of tables without a policy.
ALTER TABLE ${s}.threads ENABLE ROW LEVEL SECURITY;
CREATE POLICY tenant ON ${s}.threads FOR SELECT
  USING (tenant = current_setting('skein.tenant', true));
ALTER TABLE ${s}.user_values ENABLE ROW LEVEL SECURITY;
CREATE POLICY tenant ON ${s}.user_values FOR SELECT
  USING (tenant = current_setting('skein.tenant', true));
ALTER TABLE ${s}.events ENABLE ROW LEVEL SECURITY;
CREATE POLICY tenant ON ${s}.events FOR SELECT
  USING (log_id IN (SELECT log_id FROM ${s}.threads));
ALTER TABLE ${s}.blob_names ENABLE ROW LEVEL SECURITY;
CREATE POLICY tenant ON ${s}.blob_names FOR SELECT
  USING (thread_id IN (SELECT id FROM ${s}.threads));
ALTER TABLE ${s}.blobs ENABLE ROW LEVEL SECURITY;
CREATE POLICY tenant ON ${s}.blobs FOR SELECT
  USING (hash IN (SELECT hash FROM ${s}.blob_names));
ALTER TABLE ${s}.blob_chunks ENABLE ROW LEVEL SECURITY;
CREATE POLICY tenant ON ${s}.blob_chunks FOR SELECT
  USING (hash IN (SELECT hash FROM ${s}.blob_names));
ALTER TABLE ${s}.audit_trees ENABLE ROW LEVEL SECURITY;
CREATE POLICY tenant ON ${s}.audit_trees FOR SELECT
  USING (tree IN (SELECT id FROM ${s}.threads));
ALTER TABLE ${s}.audit ENABLE ROW LEVEL SECURITY;
CREATE POLICY tenant ON ${s}.audit FOR SELECT
  USING (tree_key IN (SELECT key FROM ${s}.audit_trees));
ALTER TABLE ${s}.snapshots ENABLE ROW LEVEL SECURITY;
ALTER TABLE ${s}.spent ENABLE ROW LEVEL SECURITY;
ALTER TABLE ${s}.settings ENABLE ROW LEVEL SECURITY;
ALTER TABLE ${s}.counters ENABLE ROW LEVEL SECURITY;
ALTER TABLE ${s}.totals ENABLE ROW LEVEL SECURITY;
ALTER TABLE ${s}.lanes ENABLE ROW LEVEL SECURITY;
`,
  },
  {
    version: 2,
    sql: (s) => `
-- The tools that the models of a thread have called; read from texts, because jsonb refuses an escaped NUL.
ALTER TABLE ${s}.threads ADD COLUMN tools jsonb NOT NULL DEFAULT '[]';
UPDATE ${s}.threads SET tools = called.names FROM (
  SELECT log_id, jsonb_agg(DISTINCT found.parts[1]) AS names FROM ${s}.events,
    regexp_matches(json, '"toolCallId":"(?:[^"\\\\]|\\\\.)*","toolName":"([^"\\\\]{1,200})"', 'g') AS found (parts)
  WHERE json LIKE '{"type":"message\\_added",%' AND strpos(json, '"toolCalls":[') > 0
  GROUP BY log_id
) called WHERE called.log_id = threads.log_id;
CREATE INDEX threads_by_tool ON ${s}.threads USING gin (tools);

-- When the last standing grant of a thread ends. Grants end within a day, so those of version 1 are left out.
ALTER TABLE ${s}.threads ADD COLUMN granted_until bigint;
CREATE INDEX threads_by_grant ON ${s}.threads (tenant, granted_until) WHERE granted_until IS NOT NULL;
`,
  },
  {
    version: 3,
    sql: (s) => `
-- What lists of one tenant filter and sort by.
DROP INDEX ${s}.threads_by_creation;
DROP INDEX ${s}.threads_by_parent;
CREATE INDEX threads_by_creation ON ${s}.threads (tenant, created_at, id);
CREATE INDEX threads_by_parent ON ${s}.threads (parent_id, created_at, id) WHERE parent_id IS NOT NULL;
-- Threads at work (queued, running) are left out, because every commit of a turn would write the index.
CREATE INDEX threads_by_lifecycle ON ${s}.threads (tenant, lifecycle, updated_at, id)
  WHERE lifecycle IN ('waiting', 'stopped', 'failed', 'terminated', 'erased');
CREATE INDEX threads_by_tag ON ${s}.threads USING gin (tags);

-- The questions that wait for people and clients, written with the events that open and close them.
CREATE TABLE ${s}.waiting (
  thread_id text COLLATE "C" NOT NULL REFERENCES ${s}.threads (id) ON DELETE CASCADE,
  interrupt_id text COLLATE "C" NOT NULL,
  subject text COLLATE "C" NOT NULL,
  kind text COLLATE "C" NOT NULL,
  opened_at bigint NOT NULL,
  until bigint,
  tenant text COLLATE "C" NOT NULL,
  owner text COLLATE "C",
  agent text COLLATE "C" NOT NULL,
  root_id text COLLATE "C" NOT NULL,
  PRIMARY KEY (thread_id, interrupt_id)
);
CREATE INDEX waiting_by_time ON ${s}.waiting (opened_at, thread_id, interrupt_id);
CREATE INDEX waiting_by_tenant ON ${s}.waiting (tenant, opened_at, thread_id, interrupt_id);
CREATE INDEX waiting_by_owner ON ${s}.waiting (tenant, owner, opened_at, thread_id, interrupt_id);
CREATE INDEX waiting_by_agent ON ${s}.waiting (tenant, agent, opened_at, thread_id, interrupt_id);
CREATE INDEX waiting_by_kind ON ${s}.waiting (tenant, kind, opened_at, thread_id, interrupt_id);
CREATE INDEX waiting_by_root ON ${s}.waiting (root_id, opened_at, thread_id, interrupt_id);
CREATE INDEX waiting_by_id ON ${s}.waiting (interrupt_id);
ALTER TABLE ${s}.waiting ENABLE ROW LEVEL SECURITY;
CREATE POLICY tenant ON ${s}.waiting FOR SELECT
  USING (tenant = current_setting('skein.tenant', true));
`,
    fill: fillWaitingTable,
  },
  {
    version: 4,
    sql: (s) => `
-- Threads that were asked to stop while a call runs.
ALTER TABLE ${s}.totals ADD COLUMN stopping bigint NOT NULL DEFAULT 0;
`,
  },
]

/**
 * Creates the schema or brings it up to date, in one transaction. Nodes that start together wait for one
 * another. Throws `STORE_VERSION` for a schema of a newer program.
 */
export async function migrateSchema(
  connections: Connections,
  schema: string,
  steps: readonly Migration[] = migrations,
): Promise<void> {
  const s = quoted(schema)
  const newest = steps.at(-1)?.version ?? 0
  await connections.transaction(async (run) => {
    const [, , [facts] = []] = await run([
      { text: 'BEGIN' },
      {
        text: 'SELECT pg_advisory_xact_lock(hashtextextended($1, 0))',
        values: [`skein migrate ${schema}`],
      },
      {
        text: `SELECT current_setting('server_version_num')::int / 10000 AS major,
          current_setting('server_encoding') AS encoding,
          to_regclass($1) IS NOT NULL AS is_known,
          to_regnamespace($2) IS NOT NULL AS has_schema,
          EXISTS (SELECT 1 FROM pg_class c JOIN pg_namespace n ON n.oid = c.relnamespace
            WHERE n.nspname = $2) AS is_used`,
        values: [`${s}.store_version`, schema],
      },
    ])
    checkServer(facts!)
    let version = 0
    if (facts!['is_known']) {
      const [[row]] = await run([{ text: `SELECT version FROM ${s}.store_version` }])
      version = Number(row?.['version'] ?? 0)
    } else if (facts!['is_used'])
      throw new StoreError(`The schema ${schema} belongs to another program.`, {
        code: 'STORE_CORRUPT',
        hint: 'Choose another schema for the store (option `schema`).',
      })
    if (version > newest)
      throw new StoreError(
        `The schema ${schema} has version ${version}; this program knows ${newest}.`,
        {
          code: 'STORE_VERSION',
          hint: 'A newer version of the program has used it. Update, or use a backup from before.',
        },
      )
    if (version === newest) return run([{ text: 'ROLLBACK' }])
    const tables = `CREATE TABLE ${s}.store_version (version int NOT NULL);
      INSERT INTO ${s}.store_version VALUES (0);
      ALTER TABLE ${s}.store_version ENABLE ROW LEVEL SECURITY;`
    // Not `CREATE SCHEMA IF NOT EXISTS`, because that needs the right to create schemas even if this schema exists.
    const creation = facts!['has_schema'] ? tables : `CREATE SCHEMA ${s}; ${tables}`
    if (!facts!['is_known']) await run([{ text: creation, isScript: true }])
    for (const step of steps.filter((one) => one.version > version)) {
      await run([{ text: step.sql(s), isScript: true }])
      if (version > 0) await step.fill?.(run, s) // a new schema has nothing to read
    }
    return run([
      { text: `UPDATE ${s}.store_version SET version = $1`, values: [newest] },
      { text: 'COMMIT' },
    ])
  })
}

/**
 * The condition for threads whose changes readers may see. A change stays hidden while a transaction that
 * began before it still runs: so a reader that has seen a number can rely on having seen all smaller ones.
 */
export function isSettled(s: string): string {
  return `change < pg_snapshot_xmin(pg_current_snapshot())::text::bigint + ${changeBase(s)}`
}

/** The offset that is added to transaction numbers; not 0 in a database that was filled from a copy. */
function changeBase(s: string): string {
  return `coalesce((SELECT (json::jsonb ->> 'base')::bigint FROM ${s}.settings WHERE name = '${CHANGES}'), 0)`
}

/** The name of the setting that has the offset for change numbers. */
export const CHANGES = ' changes'

/** The SQL expression for the change number of this transaction. Numbers grow in the order of transactions. */
export function changeNumber(s: string): string {
  return `pg_current_xact_id()::text::bigint + ${changeBase(s)}`
}
