import { mkdirSync } from 'node:fs'
import { dirname } from 'node:path'
import { DatabaseSync } from 'node:sqlite'

/** What the shop knows. A real desk would ask its database; this one has a small one next to the store. */
export interface Order {
  readonly number: string
  readonly item: string
  readonly amount: number
  readonly status: 'on its way' | 'delivered' | 'refunded'
}

/** Opens the orders when the first one is looked for. `SHOP_DB` names another file, or `:memory:`. */
function shop(): DatabaseSync {
  if (opened) return opened
  const path = process.env['SHOP_DB'] ?? '.skein/shop.db'
  if (path !== ':memory:') mkdirSync(dirname(path), { recursive: true, mode: 0o700 })
  // Other processes of this folder may write at the same time.
  opened = new DatabaseSync(path, { timeout: 2000 })
  opened.exec(`
    CREATE TABLE IF NOT EXISTS orders (
      number TEXT PRIMARY KEY, item TEXT NOT NULL, amount REAL NOT NULL, status TEXT NOT NULL
    ) STRICT;
    INSERT OR IGNORE INTO orders VALUES
      ('O-7', 'a brass lamp', 25, 'delivered'),
      ('O-8', 'a set of wool yarn', 12, 'on its way'),
      ('O-9', 'an oak loom', 240, 'delivered');
  `)
  return opened
}

let opened: DatabaseSync | undefined

/** Throws a text that a model can pass on. */
export function findOrder(number: unknown): Order {
  const wanted = typeof number === 'string' ? number.toUpperCase() : ''
  const order = shop().prepare('SELECT * FROM orders WHERE number = ?').get(wanted)
  if (order) return order as unknown as Order // the columns of the table
  const known = shop().prepare('SELECT number FROM orders ORDER BY number').all()
  const numbers = known.map((row) => String(row['number'])).join(', ')
  throw new Error(`There is no order ${String(number)}. Known: ${numbers}.`)
}

/** Pays an order back. One statement checks and writes, so that two processes cannot both do it. */
export function refundOrder(number: string): boolean {
  const pay = "UPDATE orders SET status = 'refunded' WHERE number = ? AND status <> 'refunded'"
  return shop().prepare(pay).run(number).changes === 1
}

/** Takes a refund back; an order that was not refunded stays as it is. */
export function undoRefund(number: string): void {
  const undo = "UPDATE orders SET status = 'delivered' WHERE number = ? AND status = 'refunded'"
  shop().prepare(undo).run(number)
}
