import { join } from 'node:path'
import { DatabaseSync } from 'node:sqlite'
import { createRuntime, sqliteStore } from '@skein/runtime'
import type { Bench } from '../runner/bench.ts'
import { newFolder } from './clients/client.ts'
import { longThread } from './long-thread.ts'

const events = 100_000

const bench: Bench = {
  title: `Runtime: the first read of a thread of ${events} events by a new process, in its file`,
  baseline: 'by hand',
  measure: 'cpu',
  warmups: 1,
  repetitions: 5,
  contenders: {
    // The same messages as rows of JSON, as the loop by hand reads them.
    'by hand': {
      async prepare() {
        const { folder, id, messages } = await longThread(events)
        const runtime = await createRuntime({ agents: [], folder, secretKey: new Uint8Array(32) })
        const all = await runtime.threads.messages(id)
        await runtime.stop()
        const path = join(newFolder(), 'threads.db')
        const database = new DatabaseSync(path)
        database.exec('CREATE TABLE messages (json TEXT NOT NULL)')
        const insert = database.prepare('INSERT INTO messages (json) VALUES (?)')
        database.exec('BEGIN')
        for (const message of all) insert.run(JSON.stringify(message))
        database.exec('COMMIT')
        database.close()
        return () => {
          const opened = new DatabaseSync(path)
          const rows = opened.prepare('SELECT json FROM messages ORDER BY rowid').all()
          const read = rows.map(({ json }) => JSON.parse(json as string) as object)
          opened.close()
          if (read.length < messages) throw new Error(`Only ${read.length} messages were read.`)
          return messages
        }
      },
    },
    skein: {
      async prepare() {
        const { folder, id, messages } = await longThread(events)
        return async () => {
          const store = sqliteStore({ path: join(folder, 'skein.db') })
          const runtime = await createRuntime({ agents: [], store, secretKey: new Uint8Array(32) })
          const read = await runtime.threads.messages(id, { order: 'desc', limit: 50 })
          await runtime.stop()
          await store.close()
          if (read.length < 50) throw new Error(`Only ${read.length} messages were read.`)
          return messages
        }
      },
    },
  },
}
export default bench
