import { readdirSync } from 'node:fs'
import { join } from 'node:path'
import { DatabaseSync } from 'node:sqlite'
import { measured, type Bench } from '../runner/bench.ts'
import { contenders } from './clients/client.ts'

const turns = 100
const window = 20

/** Bytes of the databases in a folder, with what is in their logs. */
function bytesIn(folder: string): number {
  return readdirSync(folder, { recursive: true, encoding: 'utf8' })
    .filter((name) => name.endsWith('.db'))
    .reduce((sum, name) => {
      const database = new DatabaseSync(join(folder, name), { readOnly: true })
      const pages = Number(database.prepare('PRAGMA page_count').get()?.['page_count'])
      const size = Number(database.prepare('PRAGMA page_size').get()?.['page_size'])
      database.close()
      return sum + pages * size
    }, 0)
}

const bench: Bench = {
  title: `Runtime: bytes of the database per turn, turns ${turns - window + 1} to ${turns} of one thread`,
  baseline: 'by hand',
  measure: 'returned',
  unit: 'bytes',
  warmups: 0,
  repetitions: 1,
  processes: 1,
  contenders: contenders((client, { folder }) => async () => {
    let before = 0
    for (let turn = 1; turn <= turns; turn++) {
      await client.turn('long', `What is known? (${turn})`)
      if (turn === turns - window) before = bytesIn(folder)
    }
    return measured((bytesIn(folder) - before) / window, turns)
  }),
}
export default bench
