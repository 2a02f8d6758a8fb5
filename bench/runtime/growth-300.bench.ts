import { DatabaseSync } from 'node:sqlite'
import { join } from 'node:path'
import { measured, type Bench, type Contender } from '../runner/bench.ts'
import { newFolder } from './clients/client.ts'
import { skeinClient } from './clients/skein.ts'
import { startMock } from './start-mock.ts'

/** Bytes that the database of one thread gains per turn between two turns. */
function gained(from: number, to: number): Contender {
  return {
    async prepare() {
      const folder = newFolder()
      const lookUp = (id: number): object => ({ id, title: 'A thread', tags: ['long', 'red'] })
      const client = await skeinClient({ baseUrl: await startMock(), folder, lookUp })
      const bytes = (): number => {
        const database = new DatabaseSync(join(folder, 'skein.db'), { readOnly: true })
        const count = Number(database.prepare('PRAGMA page_count').get()?.['page_count'])
        const size = Number(database.prepare('PRAGMA page_size').get()?.['page_size'])
        database.close()
        return count * size
      }
      let thread = 0
      return async () => {
        const name = `thread ${thread++}`
        let before = bytes()
        for (let turn = 1; turn <= to; turn++) {
          await client.turn(name, `What is known? (${turn})`)
          if (turn === from - 1) before = bytes()
        }
        return measured((bytes() - before) / (to - from + 1), 'grown')
      }
    },
  }
}

const bench: Bench = {
  title: 'Runtime: bytes of the database per turn of one thread, early and late (goal: the same)',
  baseline: 'turns 11 to 60',
  measure: 'returned',
  unit: 'bytes',
  warmups: 0,
  repetitions: 1,
  processes: 1,
  contenders: { 'turns 11 to 60': gained(11, 60), 'turns 251 to 300': gained(251, 300) },
}
export default bench
