import { DatabaseSync, StatementSync } from 'node:sqlite'

/** A statement that read from a SQLite store, with the steps of its query plan. */
export interface ReadPlan {
  readonly sql: string
  readonly steps: readonly string[]
}

/** Counts the rows that SQLite returns while `work` reads from a store. */
export async function readRows(work: () => Promise<unknown>): Promise<number> {
  let rows = 0
  await observed(work, (_, result) => {
    rows += Array.isArray(result) ? result.length : result === undefined ? 0 : 1
  })
  return rows
}

/** Records the statements that SQLite runs while `work` reads from the store at `path`, and explains them. */
export async function readPlans(
  path: string,
  work: () => Promise<unknown>,
): Promise<readonly ReadPlan[]> {
  const statements = new Set<string>()
  await observed(work, (sql) => statements.add(sql))
  const database = new DatabaseSync(path, { readOnly: true })
  try {
    return [...statements].map((sql) => {
      const plan = database.prepare(`EXPLAIN QUERY PLAN ${sql}`).all()
      return { sql, steps: plan.map((row) => String(row['detail'])) }
    })
  } finally {
    database.close()
  }
}

/** Calls `seen` with each statement that reads while `work` runs, and with what it returned. */
async function observed(
  work: () => Promise<unknown>,
  seen: (sql: string, result: unknown) => void,
): Promise<void> {
  const all = Object.getOwnPropertyDescriptor(StatementSync.prototype, 'all')!
  const get = Object.getOwnPropertyDescriptor(StatementSync.prototype, 'get')!
  for (const [name, { value, ...rest }] of Object.entries({ all, get })) {
    const run = value as (this: StatementSync, ...values: unknown[]) => unknown
    Object.defineProperty(StatementSync.prototype, name, {
      ...rest,
      value(this: StatementSync, ...values: unknown[]) {
        const result = run.apply(this, values)
        seen(this.sourceSQL, result)
        return result
      },
    })
  }
  try {
    await work()
  } finally {
    Object.defineProperties(StatementSync.prototype, { all, get })
  }
}
