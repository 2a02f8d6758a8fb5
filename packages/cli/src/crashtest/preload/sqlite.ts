import { relative } from 'node:path'
import type * as Sqlite from 'node:sqlite'
import type { Crashtest } from './protocol.ts'

const COMMIT = /(?:^|;)\s*(?:COMMIT|END)\b/i
const WRITE = /^\s*(?:INSERT|UPDATE|DELETE|REPLACE|WITH)\b/i

/** Makes each commit of `node:sqlite` a step: what Skein stores, and what any other program stores with it. */
export function interceptSqlite(steps: Crashtest): void {
  const sqlite = loadSqlite()
  if (sqlite === undefined) return
  const { DatabaseSync, StatementSync } = sqlite
  const databases = new WeakMap<Sqlite.StatementSync, Sqlite.DatabaseSync>()
  const step = <T>(database: Sqlite.DatabaseSync, sql: string, run: () => T): T => {
    const isCommit =
      database.isOpen && (COMMIT.test(sql) || (!database.isTransaction && WRITE.test(sql)))
    if (!isCommit) return run()
    const number = steps.step('commit', `commit ${nameOf(database)}`)
    const result = run()
    steps.done(number)
    return result
  }
  const { exec, prepare } = DatabaseSync.prototype
  DatabaseSync.prototype.exec = function (sql) {
    return step(this, sql, () => exec.call(this, sql))
  }
  DatabaseSync.prototype.prepare = function (...given: Parameters<typeof prepare>) {
    const statement = prepare.apply(this, given)
    databases.set(statement, this)
    return statement
  }
  const { run } = StatementSync.prototype
  StatementSync.prototype.run = function (this: Sqlite.StatementSync, ...given: unknown[]) {
    const database = databases.get(this)
    const perform = (): Sqlite.StatementResultingChanges =>
      Reflect.apply(run, this, given) as Sqlite.StatementResultingChanges
    return database ? step(database, this.sourceSQL, perform) : perform()
  }
}

function nameOf(database: Sqlite.DatabaseSync): string {
  const file = database.location()
  return file === null ? 'in memory' : relative(process.cwd(), file)
}

/** Loads it without the warning that earlier versions of Node print. */
function loadSqlite(): typeof Sqlite | undefined {
  const { emitWarning } = process
  process.emitWarning = () => undefined
  try {
    return process.getBuiltinModule('node:sqlite')
  } finally {
    process.emitWarning = emitWarning
  }
}
