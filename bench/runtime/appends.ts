import { join } from 'node:path'
import { DatabaseSync } from 'node:sqlite'
import { sqliteStore, type RuntimeEvent } from '@skein/runtime'
import type { Bench, Timed } from '../runner/bench.ts'
import { newFolder } from './clients/client.ts'

const event: RuntimeEvent = {
  type: 'value_set',
  at: '2026-01-01T00:00:00.000Z',
  key: 'note',
  value: 'x'.repeat(950),
}

/** Durable appends of 1 KB, each a commit of its own, from so many writers at the same time. */
export function appends({
  writers,
  each,
}: {
  readonly writers: number
  readonly each: number
}): Bench {
  const amount = writers * each
  const who = writers === 1 ? 'one after the other' : `to ${writers} threads at the same time`
  return {
    title: `Runtime: ${amount.toLocaleString('en')} durable appends of 1 KB, ${who}`,
    baseline: 'plain INSERT',
    amount: { value: amount, unit: 'appends' },
    warmups: 1,
    repetitions: 5,
    contenders: {
      'plain INSERT': { prepare: () => plainInserts(amount) },
      skein: { prepare: () => skeinAppends(writers, each) },
    },
  }
}

/** The same settings as our store has. */
function plainInserts(amount: number): Timed {
  const database = new DatabaseSync(join(newFolder(), 'plain.db'))
  database.exec(`
    PRAGMA journal_mode = WAL;
    PRAGMA synchronous = FULL;
    PRAGMA secure_delete = ON;
    PRAGMA cache_size = -16000;
    PRAGMA journal_size_limit = 67108864;
    CREATE TABLE events (thread_id TEXT NOT NULL, seq INTEGER NOT NULL, json TEXT NOT NULL);
    CREATE UNIQUE INDEX events_by_thread ON events (thread_id, seq);
  `)
  const insert = database.prepare('INSERT INTO events (thread_id, seq, json) VALUES (?, ?, ?)')
  let seq = 0
  return () => {
    const before = seq
    for (let index = 0; index < amount; index++) insert.run('t', ++seq, JSON.stringify(event))
    return seq - before
  }
}

async function skeinAppends(writers: number, each: number): Promise<Timed> {
  const store = sqliteStore({ path: join(newFolder(), 'skein.db') })
  const none = { owner: null, parentId: null, title: null, tags: [], clientId: null }
  const ids = Array.from({ length: writers }, (_, index) => `thread-${index}`)
  for (const id of ids) {
    const create = { tenant: 'default', agent: 'a', rootId: id, createdAt: 0, ...none }
    await store.commit({ point: 'bench', threads: [{ id, create }] })
  }
  return async () => {
    const write = async (id: string): Promise<number> => {
      let seq = 0
      const before = (await store.head(id))?.seq ?? 0
      for (let index = 0; index < each; index++) {
        const { seqs } = await store.commit({
          point: 'bench',
          threads: [{ id, append: [event] }],
        })
        seq = seqs.get(id) ?? 0
      }
      return seq - before
    }
    const written = await Promise.all(ids.map(write))
    return written.reduce((sum, count) => sum + count, 0)
  }
}
