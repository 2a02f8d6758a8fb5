import { isStorable, type Blob, type Commit } from '@skein/runtime'
import type { DatabaseRow, Statement } from './connections.ts'
import { HEAD_COLUMNS, headFromRow } from './head-rows.ts'
import { lockUsers } from './lock-users.ts'
import type { CommitView } from './view.ts'

/** The keys of all rows that some commits read or change. */
export class Names {
  readonly threads: Set<string> = new Set()
  readonly trees: Set<string> = new Set()
  readonly counters: Set<string> = new Set()
  /** Users as JSON of tenant and name. */
  readonly users: Set<string> = new Set()
  readonly #clientIds: (readonly [tenant: string, clientId: string])[] = []
  readonly #lines: (readonly [requestId: string, seq: number])[] = []
  readonly #tokens: string[] = []
  readonly #values: (readonly [tenant: string, user: string, key: string])[] = []
  #logs = 0
  #owners = false

  /** Adds the keys of a commit. Texts that cannot be stored are left out, as `planCommit` refuses them. */
  add({ threads, audit = [], spent = [], counters = [], userValues = [] }: Commit): void {
    for (const { id, create, head } of threads) {
      if (isStorable(id)) this.threads.add(id)
      if (create) this.#logs += 1
      if (create?.clientId && isStorable(create.clientId + create.tenant))
        this.#clientIds.push([create.tenant, create.clientId])
      if (head?.owner !== undefined) this.#owners = true
    }
    for (const { tree, requestId, seq } of audit) {
      if (!isStorable(tree + requestId)) continue
      this.trees.add(tree)
      this.#lines.push([requestId, seq])
    }
    for (const { jti } of spent) if (isStorable(jti)) this.#tokens.push(jti)
    for (const { name } of counters) if (isStorable(name)) this.counters.add(name)
    for (const { tenant, user, key } of userValues) {
      if (!isStorable(tenant + user + key)) continue
      this.users.add(JSON.stringify([tenant, user]))
      this.#values.push([tenant, user, key])
    }
  }

  /** Adds everything that `other` names. */
  join(other: Names): void {
    for (const id of other.threads) this.threads.add(id)
    for (const tree of other.trees) this.trees.add(tree)
    for (const name of other.counters) this.counters.add(name)
    for (const user of other.users) this.users.add(user)
    this.#clientIds.push(...other.#clientIds)
    this.#lines.push(...other.#lines)
    this.#tokens.push(...other.#tokens)
    this.#values.push(...other.#values)
    this.#logs += other.#logs
    this.#owners ||= other.#owners
  }

  addThread(id: string): void {
    if (isStorable(id)) this.threads.add(id)
  }

  /** Returns the keys of all these rows as texts. Two commits without a common key do not depend on each other. */
  keys(blobs: readonly Blob[]): string[] {
    return [
      ...[...this.threads].map((id) => `t${id}`),
      ...[...this.trees].map((tree) => `a${tree}`),
      ...[...this.counters].map((name) => `c${name}`),
      ...[...this.users].map((user) => `u${user}`),
      ...this.#clientIds.map((names) => `i${names.join('\n')}`),
      ...this.#lines.map(([requestId, seq]) => `l${requestId} ${seq}`),
      ...this.#tokens.map((jti) => `s${jti}`),
      ...blobs.map(({ hash }) => `b${hash}`),
    ]
  }

  /**
   * Returns the statements that lock and read all these rows, each with the function that puts its rows
   * into a view. Every transaction locks the tables in this order, and the rows of a table in sorted
   * order, so that no two transactions wait for each other.
   */
  reading(s: string): {
    readonly statement: Statement
    readonly put: (rows: DatabaseRow[], view: CommitView) => void
  }[] {
    const reads: ReturnType<Names['reading']> = []
    const addRead = (
      text: string,
      values: NonNullable<Statement['values']>,
      put: (rows: DatabaseRow[], view: CommitView) => void = () => {},
    ): void => void reads.push({ statement: { text, values }, put })
    const ids = [...this.threads]
    if (ids.length > 0) {
      addRead(
        `SELECT ${HEAD_COLUMNS} FROM ${s}.threads WHERE id = ANY($1) ORDER BY id FOR UPDATE`,
        [ids],
        (rows, view) => {
          for (const head of rows.map(headFromRow)) view.heads.set(head.id, head)
        },
      )
    }
    if (this.#clientIds.length > 0 || this.#owners)
      addRead(
        `SELECT tenant, owner, client_id FROM ${s}.threads WHERE (tenant, client_id) IN (
          SELECT * FROM unnest($1::text[], $2::text[])
          UNION SELECT tenant, client_id FROM ${s}.threads WHERE id = ANY($3))`,
        [this.#clientIds.map(([tenant]) => tenant), this.#clientIds.map(([, id]) => id), ids],
        (rows, view) => {
          for (const { tenant, owner, client_id } of rows)
            view.clientIds.add(JSON.stringify([tenant, owner, client_id]))
        },
      )
    this.#readAudit(s, addRead)
    this.#readCounters(s, addRead)
    this.#readUsers(s, addRead)
    if (this.#tokens.length > 0)
      addRead(`SELECT jti FROM ${s}.spent WHERE jti = ANY($1)`, [this.#tokens], (rows, view) => {
        for (const { jti } of rows) view.spent.add(jti as string)
      })
    if (this.#logs > 0)
      addRead(
        `SELECT nextval('${s}.log_ids') AS id FROM generate_series(1, $1)`,
        [this.#logs],
        (rows, view) => view.logIds.push(...rows.map(({ id }) => id as number)),
      )
    return reads
  }

  #readAudit(s: string, read: Read): void {
    if (this.trees.size === 0) return
    const trees = [...this.trees]
    read(
      `SELECT tree, length FROM ${s}.audit_trees WHERE tree = ANY($1) ORDER BY tree FOR UPDATE`,
      [trees],
      (rows, view) => {
        for (const { tree, length } of rows) view.trees.set(tree as string, length as number)
      },
    )
    read(
      `SELECT request_id, seq FROM ${s}.audit
      WHERE (request_id, seq) IN (SELECT * FROM unnest($1::text[], $2::int[]))`,
      [this.#lines.map(([requestId]) => requestId), this.#lines.map(([, seq]) => seq)],
      (rows, view) => {
        for (const { request_id, seq } of rows) view.lines.add(JSON.stringify([request_id, seq]))
      },
    )
  }

  #readCounters(s: string, read: Read): void {
    if (this.counters.size === 0) return
    const names = [...this.counters]
    // A counter that does not exist cannot be locked, so it is created; `CommitView.statements` removes
    // it again unless a commit changes it.
    read(
      `INSERT INTO ${s}.counters (name, value) SELECT name, 0 FROM unnest($1::text[]) name ORDER BY name
      ON CONFLICT DO NOTHING RETURNING name`,
      [names],
      (rows, view) => {
        for (const { name } of rows) view.createdCounters.add(name as string)
      },
    )
    read(
      `SELECT name, value FROM ${s}.counters WHERE name = ANY($1) ORDER BY name FOR UPDATE`,
      [names],
      (rows, view) => {
        for (const { name, value } of rows) view.counters.set(name as string, value as number)
      },
    )
  }

  #readUsers(s: string, read: Read): void {
    if (this.users.size === 0) return
    const users = [...this.users]
    read(lockUsers(s), [users])
    const [tenants, names, keys] = [0, 1, 2].map((at) => this.#values.map((value) => value[at]!))
    read(
      `SELECT tenant, user_id, key, version FROM ${s}.user_values
      WHERE (tenant, user_id, key) IN (SELECT * FROM unnest($1::text[], $2::text[], $3::text[]))`,
      [tenants!, names!, keys!],
      (rows, view) => {
        for (const { tenant, user_id, key, version } of rows)
          view.versions.set(JSON.stringify([tenant, user_id, key]), version as number)
      },
    )
    read(
      `SELECT tenant, user_id, count(*) AS count FROM ${s}.user_values
      WHERE (tenant, user_id) IN (SELECT * FROM unnest($1::text[], $2::text[])) GROUP BY 1, 2`,
      [tenants!, names!],
      (rows, view) => {
        for (const { tenant, user_id, count } of rows)
          view.valueCounts.set(JSON.stringify([tenant, user_id]), count as number)
      },
    )
    read(
      `SELECT nextval('${s}.user_versions') AS version FROM generate_series(1, $1)`,
      [this.#values.length],
      (rows, view) => view.newVersions.push(...rows.map(({ version }) => version as number)),
    )
  }
}

export type Read = (
  text: string,
  values: NonNullable<Statement['values']>,
  put?: (rows: DatabaseRow[], view: CommitView) => void,
) => void
