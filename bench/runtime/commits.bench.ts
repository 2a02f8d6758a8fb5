import { join } from 'node:path'
import { DatabaseSync } from 'node:sqlite'
import { type Commit, sqliteStore, type Store } from '@skein/runtime'
import { measured, type Bench } from '../runner/bench.ts'
import { byHandClient } from './clients/by-hand.ts'
import { newFolder } from './clients/client.ts'
import { startRuntime } from './clients/skein.ts'
import { startMock } from './start-mock.ts'

const turns = 10
const lookUp = (id: number): object => ({ id, title: 'A thread', tags: ['long', 'red'] })

/** Counts what is written with a sync of its own. A claim is written without one. */
function counting(store: Store, count: (commit: Commit) => void): Store {
  return new Proxy(store, {
    get(target, name) {
      if (name === 'commit')
        return (commit: Commit) => {
          if (!commit.isLazy) count(commit)
          return target.commit(commit)
        }
      const member: unknown = Reflect.get(target, name)
      return typeof member === 'function' ? member.bind(target) : member
    },
  })
}

const bench: Bench = {
  title: 'Runtime: commits with a sync per turn with one tool round',
  baseline: 'by hand',
  measure: 'returned',
  unit: 'commits',
  warmups: 0,
  repetitions: 1,
  processes: 1,
  contenders: {
    'by hand': {
      async prepare() {
        const folder = newFolder()
        const client = await byHandClient({ baseUrl: await startMock(), folder, lookUp })
        // Each row is an INSERT of its own.
        const rows = (): number => {
          const database = new DatabaseSync(join(folder, 'threads.db'), { readOnly: true })
          const row = database.prepare('SELECT count(*) AS count FROM messages').get()
          database.close()
          return Number(row?.['count'])
        }
        return async () => {
          const before = rows()
          for (let turn = 0; turn < turns; turn++) await client.turn('one', `Turn ${turn}`)
          return measured((rows() - before) / turns, turns)
        }
      },
    },
    skein: {
      async prepare() {
        let commits = 0
        const folder = newFolder()
        const store = counting(sqliteStore({ path: join(folder, 'skein.db') }), () => commits++)
        const options = { baseUrl: await startMock(), folder, lookUp, store }
        const { threads } = await startRuntime(options)
        return async () => {
          const { id } = await threads.create({ agent: 'helper' })
          commits = 0
          for (let turn = 0; turn < turns; turn++) await threads.run(id, `Turn ${turn}`)
          return measured(commits / turns, turns)
        }
      },
    },
  },
}
export default bench
