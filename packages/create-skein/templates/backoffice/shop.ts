import { mkdirSync } from 'node:fs'
import { dirname } from 'node:path'
import { DatabaseSync } from 'node:sqlite'

export interface Order {
  readonly number: string
  readonly item: string
  readonly amount: number
  readonly status: 'on its way' | 'delivered' | 'refunded'
}

/** The shop's own database, a stand-in for yours: what was refunded stays refunded over a restart. */
function openShop(path: string): DatabaseSync {
  if (path !== ':memory:') mkdirSync(dirname(path), { recursive: true, mode: 0o700 })
  const database = new DatabaseSync(path, { timeout: 2000 })
  database.exec(`
    CREATE TABLE IF NOT EXISTS orders (
      number TEXT PRIMARY KEY, item TEXT NOT NULL, amount REAL NOT NULL, status TEXT NOT NULL
    ) STRICT;
    INSERT OR IGNORE INTO orders VALUES
      ('O-7', 'a brass lamp', 25, 'delivered'),
      ('O-8', 'a set of wool yarn', 12, 'on its way'),
      ('O-9', 'an oak loom', 240, 'delivered');
  `)
  return database
}

let opened: DatabaseSync | undefined
const shop = (): DatabaseSync => (opened ??= openShop(process.env.SHOP_DB ?? '.skein/shop.db'))

/** Throws a sentence that a model can pass on. */
export function findOrder(number: string): Order {
  const row = shop().prepare('SELECT * FROM orders WHERE number = ?').get(number.toUpperCase())
  if (row) return row as unknown as Order // the columns of the table
  throw new Error(`There is no order ${number}. Known: O-7, O-8, O-9.`)
}

export function setStatus(number: string, status: Order['status']): void {
  shop().prepare('UPDATE orders SET status = ? WHERE number = ?').run(status, number)
}
