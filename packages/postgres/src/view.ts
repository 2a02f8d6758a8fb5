import {
  type Blob,
  type Commit,
  type CommitPlan,
  isStorable,
  type StoreView,
  type ThreadHead,
} from '@skein/runtime'
import { type DatabaseRow, insertStatements, type Statement } from './connections.ts'
import { auditStatements } from './audit-lines.ts'
import { HEAD_COLUMNS, headFromRow, headStatements } from './head-rows.ts'
import { totalsStatement } from './totals.ts'
import { waitingStatements } from './waiting.ts'

type UserOf = Parameters<StoreView['userVersion']>[0]

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

type Read = (
  text: string,
  values: NonNullable<Statement['values']>,
  put?: (rows: DatabaseRow[], view: CommitView) => void,
) => void

/** Locks users until the end of the transaction. Uses advisory locks, because a user without values has no row. */
export function lockUsers(s: string): string {
  return `SELECT pg_advisory_xact_lock(key) FROM (
    SELECT DISTINCT hashtextextended('skein user ${s.replaceAll('"', '')} ' || name, 0) AS key
    FROM unnest($1::text[]) name ORDER BY 1) keys`
}

/** What the commits of one transaction see: the locked rows, as the earlier commits of the transaction changed them. */
export class CommitView implements StoreView {
  readonly heads: Map<string, ThreadHead> = new Map()
  /** The change number of this transaction, which all its commits share. */
  readonly change: number
  readonly clientIds: Set<string> = new Set()
  readonly logIds: number[] = []
  /** The lengths of audit logs. */
  readonly trees: Map<string, number> = new Map()
  readonly lines: Set<string> = new Set()
  readonly spent: Set<string> = new Set()
  readonly counters: Map<string, number> = new Map()
  readonly createdCounters: Set<string> = new Set()
  readonly versions: Map<string, number> = new Map()
  readonly valueCounts: Map<string, number> = new Map()
  readonly newVersions: number[] = []
  /** The rows of the threads that change, as they were before the transaction. */
  readonly #before = new Map<string, ThreadHead | undefined>()
  readonly #plans: CommitPlan[] = []

  constructor(change: number) {
    this.change = change
  }

  head(id: string): ThreadHead | undefined {
    return this.heads.get(id)
  }

  hasClientId(tenant: string, owner: string | null, clientId: string): boolean {
    return this.clientIds.has(JSON.stringify([tenant, owner, clientId]))
  }

  newLogId(): number {
    return next(this.logIds)
  }

  newChange(): number {
    return this.change
  }

  hasAuditLine(requestId: string, seq: number): boolean {
    return this.lines.has(JSON.stringify([requestId, seq]))
  }

  auditLength(tree: string): number {
    return this.trees.get(tree) ?? 0
  }

  isSpent(jti: string): boolean {
    return this.spent.has(jti)
  }

  counter(name: string): number {
    return this.counters.get(name) ?? 0
  }

  userVersion({ tenant, user }: UserOf, key: string): number | undefined {
    return this.versions.get(JSON.stringify([tenant, user, key]))
  }

  userValueCount({ tenant, user }: UserOf): number {
    return this.valueCounts.get(JSON.stringify([tenant, user])) ?? 0
  }

  newVersion(): number {
    return next(this.newVersions)
  }

  /** Makes a planned commit visible to the commits after it. */
  apply(plan: CommitPlan): void {
    this.#plans.push(plan)
    for (const { head } of plan.heads) this.setHead(head)
    for (const { tree, requestId, seq, index } of plan.audit) {
      this.lines.add(JSON.stringify([requestId, seq]))
      this.trees.set(tree, index + 1)
    }
    for (const { jti } of plan.spent) this.spent.add(jti)
    for (const [name, value] of plan.counters) this.counters.set(name, value ?? 0)
    for (const { tenant, user, key, json, version } of plan.userValues) {
      const [name, owner] = [JSON.stringify([tenant, user, key]), JSON.stringify([tenant, user])]
      const count = this.valueCounts.get(owner) ?? 0
      const change = (json === null ? 0 : 1) - (this.versions.has(name) ? 1 : 0)
      this.valueCounts.set(owner, count + change)
      if (json === null) this.versions.delete(name)
      else this.versions.set(name, version)
    }
  }

  setHead(head: ThreadHead): void {
    const before = this.heads.get(head.id)
    if (!this.#before.has(head.id)) this.#before.set(head.id, before)
    if (before?.clientId)
      this.clientIds.delete(JSON.stringify([before.tenant, before.owner, before.clientId]))
    if (head.clientId) this.clientIds.add(JSON.stringify([head.tenant, head.owner, head.clientId]))
    this.heads.set(head.id, head)
  }

  /** Returns the statements that write all changes; an empty list if there are none. */
  statements(s: string): Statement[] {
    const plans = this.#plans
    const heads = [...this.#before].map(([id, before]) => ({ head: this.heads.get(id)!, before }))
    const totals = totalsStatement(s, heads)
    const events = plans.flatMap((plan) => {
      const logIds = new Map(plan.heads.map(({ head }) => [head.id, head.logId]))
      return plan.events.map(({ threadId, seq, json }) => [logIds.get(threadId)!, seq, json])
    })
    const names = new Map(
      plans.flatMap((plan) =>
        plan.blobNames.map(({ threadId, hash }) => [`${hash} ${threadId}`, [threadId, hash]]),
      ),
    )
    const statements = [
      ...headStatements(s, heads),
      ...insertStatements(`${s}.events`, ['log_id', 'seq', 'json'], events),
      ...waitingStatements(
        s,
        plans.flatMap((plan) => plan.waiting),
      ),
      ...insertStatements(
        `${s}.blob_names`,
        ['thread_id', 'hash'],
        [...names.values()].sort(([, a], [, b]) => (a! < b! ? -1 : 1)),
        'ON CONFLICT DO NOTHING',
      ),
      ...this.#auditStatements(s),
      ...insertStatements(
        `${s}.spent`,
        ['jti', 'exp'],
        plans.flatMap((plan) => plan.spent.map(({ jti, exp }) => [jti, Math.round(exp)])),
      ),
      ...this.#counterStatements(s),
      ...this.#userStatements(s),
    ]
    return totals ? [...statements, totals] : statements
  }

  /** Whether no commit writes anything, except contents. */
  get isUnchanged(): boolean {
    return this.#plans.length === 0 && this.#before.size === 0
  }

  #auditStatements(s: string): Statement[] {
    const byTree = new Map<string, CommitPlan['audit'][number][]>()
    for (const line of this.#plans.flatMap((plan) => plan.audit)) {
      const lines = byTree.get(line.tree)
      if (lines) lines.push(line)
      else byTree.set(line.tree, [line])
    }
    return [...byTree]
      .sort(([a], [b]) => (a < b ? -1 : 1))
      .flatMap(([tree, lines]) => auditStatements(s, tree, lines))
  }

  #counterStatements(s: string): Statement[] {
    const last = new Map(this.#plans.flatMap((plan) => [...plan.counters]))
    const removals = [...this.createdCounters].filter((name) => !last.has(name))
    const rows: (readonly [string, number])[] = []
    for (const [name, value] of last)
      if (value === null) removals.push(name)
      else rows.push([name, value])
    const sets = insertStatements(
      `${s}.counters`,
      ['name', 'value'],
      rows,
      'ON CONFLICT (name) DO UPDATE SET value = excluded.value',
    )
    if (removals.length === 0) return sets
    return [...sets, { text: `DELETE FROM ${s}.counters WHERE name = ANY($1)`, values: [removals] }]
  }

  #userStatements(s: string): Statement[] {
    const last = new Map(
      this.#plans.flatMap((plan) =>
        plan.userValues.map((row) => [JSON.stringify([row.tenant, row.user, row.key]), row]),
      ),
    )
    const rows = [...last.values()]
    return [
      ...insertStatements(
        `${s}.user_values`,
        ['tenant', 'user_id', 'key', 'json', 'version', 'updated_at'],
        rows
          .filter(({ json }) => json !== null)
          .map(({ tenant, user, key, json, version, updatedAt }) => [
            tenant,
            user,
            key,
            json,
            version,
            updatedAt,
          ]),
        `ON CONFLICT (tenant, user_id, key) DO UPDATE
        SET json = excluded.json, version = excluded.version, updated_at = excluded.updated_at`,
      ),
      ...rows
        .filter(({ json }) => json === null)
        .map(({ tenant, user, key }) => ({
          text: `DELETE FROM ${s}.user_values WHERE tenant = $1 AND user_id = $2 AND key = $3`,
          values: [tenant, user, key],
        })),
    ]
  }
}

function next(numbers: number[]): number {
  const number = numbers.shift()
  if (number === undefined) throw new Error('A commit needs more numbers than it names.')
  return number
}

export function joined(jobs: readonly { readonly names: Names }[]): Names {
  const all = new Names()
  for (const { names } of jobs) all.join(names)
  return all
}
