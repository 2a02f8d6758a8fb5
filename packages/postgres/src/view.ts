import type { CommitPlan, StoreView, ThreadHead } from '@skein/runtime'
import { auditStatements } from './audit-lines.ts'
import { Names } from './commit-names.ts'
import type { Statement } from './connections.ts'
import { headStatements } from './head-rows.ts'
import { insertStatements } from './insert-statements.ts'
import { totalsStatement } from './totals.ts'
import { waitingStatements } from './waiting.ts'

type UserOf = Parameters<StoreView['userVersion']>[0]

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
