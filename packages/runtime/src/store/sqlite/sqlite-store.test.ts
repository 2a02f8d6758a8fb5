import { spawn } from 'node:child_process'
import { once } from 'node:events'
import { mkdtempSync, readdirSync, readFileSync, rmSync, statSync, writeFileSync } from 'node:fs'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { DatabaseSync } from 'node:sqlite'
import { afterAll, describe, expect, test } from 'vitest'
import { sha256Hex } from '@skein/base'
import { addThreads, newThread, valueSet } from '../../testing/contract.ts'
import { sqliteStore } from './sqlite-store.ts'
import type { Store } from '../store.ts'

const folder = mkdtempSync(join(tmpdir(), 'skein-sqlite-'))
let count = 0
const newPath = () => join(folder, `${count++}`, 'store.db')

afterAll(() => rmSync(folder, { recursive: true, force: true }))

function append(store: Store, id: string, value: string): Promise<unknown> {
  return store.commit({ point: 'test', threads: [{ id, append: [valueSet(value)] }] })
}

/** The error of a call that must throw. */
function thrownBy(call: () => unknown): unknown {
  try {
    call()
  } catch (error) {
    return error
  }
  throw new Error('Nothing was thrown.')
}

describe('one owner', () => {
  test('a second opener in the same process is refused, until the first has closed', async () => {
    const path = newPath()
    const first = sqliteStore({ path, clock: { now: () => 0 } })
    for (let i = 0; i < 3; i++) {
      const error = thrownBy(() => sqliteStore({ path }))
      expect(error).toMatchObject({ code: 'STORE_LOCKED' })
      expect(String(error)).toContain(`process ${process.pid}, since 1970-01-01T00:00:00.000Z`)
      expect((error as { hint: string }).hint).toContain('HTTP')
    }
    await first.close()
    await sqliteStore({ path }).close()
  })

  test('another process is refused with the pid of the owner, and takes over when it was killed', async () => {
    const path = newPath()
    const owner = await openElsewhere(path)
    const error = thrownBy(() => sqliteStore({ path }))
    expect(error).toMatchObject({ code: 'STORE_LOCKED' })
    expect(String(error)).toContain(`process ${owner.pid},`)
    owner.kill('SIGKILL')
    await once(owner, 'exit')
    const store = sqliteStore({ path })
    expect((await store.head('elsewhere'))?.id).toBe('elsewhere')
    await store.close()
  })

  test('a lock file that is something else is named, with what to do', async () => {
    const path = newPath()
    await makeStore(path)
    writeFileSync(`${path}.lock`, 'x'.repeat(5000))
    const error = thrownBy(() => sqliteStore({ path }))
    expect(error).toMatchObject({ code: 'STORE_CORRUPT' })
    expect(String(error)).toContain(`${path}.lock`)
  })
})

describe('leases', () => {
  test('the owner of a file ends the leases of the one before it: its threads are free at once, and suspects', async () => {
    const path = newPath()
    const first = sqliteStore({ path })
    await addThreads(first, 'a', 'b')
    await first.claim('a', { owner: 'one', leaseMs: 3_600_000 })
    await first.claim('b', { owner: 'one', leaseMs: 3_600_000 })
    await first.release('one', ['b'])
    await first.close()
    const second = sqliteStore({ path })
    const [a, b] = await Promise.all(
      ['a', 'b'].map((id) => second.claim(id, { owner: 'two', leaseMs: 3_600_000 })),
    )
    expect(a).toMatchObject({ epoch: 2, head: { attempts: 0, lease: { owner: 'two', deaths: 1 } } })
    expect(b).toMatchObject({ epoch: 2, head: { attempts: 0, lease: { owner: 'two', deaths: 0 } } })
    await second.close()
  })
})

describe('the file', () => {
  test('only its owner can read it and what is beside it', async () => {
    const path = newPath()
    const store = sqliteStore({ path })
    await addThreads(store, 'a')
    await store.backup(`${path}.copy`)
    const files = readdirSync(join(path, '..'))
    expect(files.toSorted()).toEqual(
      ['', '-shm', '-wal', '.copy', '.lock'].map((end) => `store.db${end}`),
    )
    for (const file of files) expect(statSync(join(path, '..', file)).mode & 0o777).toBe(0o600)
    await store.close()
  })

  test('a file that is no database is refused, and its lock is let go', async () => {
    const path = newPath()
    await makeStore(path)
    writeFileSync(path, 'this is not a database, whatever its name says. '.repeat(200))
    for (let i = 0; i < 2; i++)
      expect(thrownBy(() => sqliteStore({ path }))).toMatchObject({
        code: 'STORE_CORRUPT',
        hint: expect.stringContaining('backup') as string,
      })
  })

  test('pages that were damaged are refused when they are read', async () => {
    const path = newPath()
    const store = sqliteStore({ path })
    await addThreads(store, 'a')
    for (let i = 0; i < 40; i++) await append(store, 'a', 'x'.repeat(3000))
    await store.close()
    const bytes = readFileSync(path)
    writeFileSync(path, bytes.fill(0xa5, 4096 * 30))
    const damaged = sqliteStore({ path })
    const reads = [() => damaged.events('a'), () => damaged.list({}), () => damaged.head('a')]
    const codes = await Promise.all(
      reads.map((read) => read().catch((error: unknown) => (error as { code: string }).code)),
    )
    expect(codes).toContain('STORE_CORRUPT')
    expect(await damaged.check()).not.toEqual([])
    await damaged.close()
    writeFileSync(path, bytes.fill(0xa5, 4096 * 2))
    expect(thrownBy(() => sqliteStore({ path }))).toMatchObject({ code: 'STORE_CORRUPT' })
  })

  test('a database of another program is left alone', async () => {
    const path = newPath()
    await makeStore(path)
    rmSync(path)
    const other = new DatabaseSync(path)
    other.exec('CREATE TABLE diary (day TEXT)')
    other.close()
    expect(String(thrownBy(() => sqliteStore({ path })))).toContain('another program')
  })

  test('a newer version is refused with what to do', async () => {
    const path = newPath()
    await makeStore(path)
    const newer = new DatabaseSync(path)
    newer.exec('PRAGMA user_version = 99')
    newer.close()
    expect(thrownBy(() => sqliteStore({ path }))).toMatchObject({
      code: 'STORE_VERSION',
      hint: expect.stringContaining('Update') as string,
    })
  })
})

describe('backup', () => {
  test('a copy made while commits go on is whole, and opens as a store', async () => {
    const path = newPath()
    const store = sqliteStore({ path })
    await addThreads(store, 'a', 'b')
    for (let i = 0; i < 300; i++) await append(store, 'a', 'x'.repeat(2000))
    let isCopying = true
    const copying = store.backup(`${path}.copy`).finally(() => (isCopying = false))
    let during = 0
    // Both threads in one commit: a copy has both or neither.
    while (isCopying) {
      const threads = ['a', 'b'].map((id) => ({ id, append: [valueSet(during)] }))
      await store.commit({ point: 'test', threads })
      during++
    }
    await copying
    const copy = sqliteStore({ path: `${path}.copy` })
    expect(await copy.check()).toEqual([])
    const [a, b] = [await copy.events('a'), await copy.events('b')]
    expect(a.length).toBe(300 + b.length)
    expect(b.length).toBeLessThanOrEqual(during)
    await append(copy, 'a', 'goes on')
    await copy.close()
    await store.close()
  })

  test('a file that exists is not overwritten', async () => {
    const path = newPath()
    const store = sqliteStore({ path })
    writeFileSync(`${path}.copy`, 'precious')
    await expect(store.backup(`${path}.copy`)).rejects.toMatchObject({ code: 'STATE_CONFLICT' })
    expect(readFileSync(`${path}.copy`, 'utf8')).toBe('precious')
    await store.close()
  })
})

describe('erasure', () => {
  test('what was erased is in no file any more', async () => {
    const path = newPath()
    const store = sqliteStore({ path })
    const secret = 'only-for-your-eyes'
    const others = Array.from({ length: 5 }, (_, index) => `t${index}`)
    await addThreads(store, 'private', ...others)
    for (let i = 0; i < 200; i++) {
      const title = `${secret} ${i}`
      const long = valueSet(secret.repeat((i * 37) % 300))
      const bytes = Buffer.from(secret.repeat(i))
      const blobs = [{ hash: sha256Hex(bytes), bytes }]
      const threads = [{ id: 'private', append: [long], head: { title, tags: [secret] } }]
      await store.commit({ point: 'test', threads, blobs })
      await append(store, `t${i % 5}`, 'x'.repeat((i * 53) % 3000))
    }
    // Removing others moves rows about, which leaves copies of them behind.
    for (const id of others.slice(0, 3)) await store.remove(id)
    expect(filesWith(path, secret)).not.toEqual([])
    await Promise.all([store.erase('private', [valueSet('erased')]), store.erase('t3', [])])
    expect(filesWith(path, secret)).toEqual([])
    expect(await store.check()).toEqual([])
    expect((await store.events('t4')).length).toBe(40)
    await store.close()
    expect(filesWith(path, secret)).toEqual([])
  })

  // `secure_delete` does not find these copies: only a rewritten file has none.
  test('copies that moving rows left in pages of other threads go too', async () => {
    const path = newPath()
    const store = sqliteStore({ path })
    const ids = Array.from({ length: 30 }, (_, index) => `t${index}`)
    await addThreads(store, ...ids)
    const text = (id: string, size: number): string =>
      `${id}-secret ${'y'.repeat(size)} ${id}-secret`
    let size = 1
    for (let round = 0; round < 150; round++) {
      const threads = ids.map((id) => {
        size = (size * 16_807) % 2_147_483_647
        const title = text(id, size % 70)
        return { id, append: [valueSet(text(id, size % 500))], head: { title, tags: [title] } }
      })
      await store.commit({ point: 'test', threads })
    }
    const erased = ids.filter((_, index) => index % 3 === 0)
    await Promise.all(erased.map((id) => store.erase(id, [])))
    for (const id of erased) expect(filesWith(path, `${id}-secret`)).toEqual([])
    expect(filesWith(path, 't1-secret')).not.toEqual([])
    await store.close()
  })

  test('an erasure that a crash cut short is finished when the store is opened', async () => {
    const path = newPath()
    const store = sqliteStore({ path })
    await addThreads(store, 'a')
    for (let i = 0; i < 50; i++) await append(store, 'a', 'only-for-your-eyes')
    await store.close()
    // As far as a process gets that dies between the two halves.
    const database = new DatabaseSync(path)
    database.exec(`DELETE FROM events; INSERT INTO settings VALUES (' scrub', '{}')`)
    database.close()
    expect(filesWith(path, 'for-your-eyes')).not.toEqual([])
    const again = sqliteStore({ path })
    expect(filesWith(path, 'for-your-eyes')).toEqual([])
    expect(await again.setting(' scrub')).toBeUndefined()
    await again.close()
  })
})

describe('many commits at once', () => {
  test('share a transaction, and a failing write among them leaves the others whole', async () => {
    const store = sqliteStore({ path: newPath() })
    await addThreads(store, 'a')
    const tooLong = { hash: 'x', bytes: 'not bytes' as unknown as Uint8Array }
    const wrong = { hash: 'y', bytes: {} as unknown as Uint8Array }
    const outcomes = await Promise.allSettled([
      append(store, 'a', 'one'),
      store.commit({
        point: 'test',
        threads: [{ id: 'a', append: [valueSet('half')] }],
        blobs: [tooLong, wrong],
      }),
      append(store, 'a', 'two'),
    ])
    expect(outcomes.map(({ status }) => status)).toEqual(['fulfilled', 'rejected', 'fulfilled'])
    expect(await store.blob('x')).toBeUndefined()
    const values = (await store.events('a')).map(({ event }) => 'value' in event && event.value)
    expect(values).toEqual(['one', 'two'])
    await store.close()
  })

  test('closing waits for those that were asked for', async () => {
    const path = newPath()
    const store = sqliteStore({ path })
    const created = addThreads(store, 'a')
    const appended = append(store, 'a', 'last')
    await store.close()
    await Promise.all([created, appended])
    const again = sqliteStore({ path })
    expect((await again.events('a')).length).toBe(1)
    await again.close()
  })
})

test('the next due threads are found without reading the others', async () => {
  const path = newPath()
  await makeStore(path)
  const database = new DatabaseSync(path)
  const plan = (sql: string) =>
    database
      .prepare(`EXPLAIN QUERY PLAN ${sql}`)
      .all()
      .map((row) => `${row['detail']}`)
      .join('; ')
  expect(plan('SELECT id FROM threads WHERE wake_at <= 1 ORDER BY wake_at, id LIMIT 5')).toContain(
    'threads_by_wake',
  )
  expect(plan('SELECT min(wake_at) FROM threads WHERE wake_at > 1')).toContain('threads_by_wake')
  database.close()
})

/** Makes the file and its folder. */
async function makeStore(path: string): Promise<void> {
  await sqliteStore({ path }).close()
}

function filesWith(path: string, text: string): string[] {
  const all = readdirSync(join(path, '..'))
  return all.filter((file) => readFileSync(join(path, '..', file)).includes(text))
}

/** A process that has the store open, with one thread in it. */
async function openElsewhere(path: string) {
  const program = `
    import { sqliteStore } from ${JSON.stringify(import.meta.resolve('./sqlite-store.ts'))}
    const store = sqliteStore({ path: ${JSON.stringify(path)} })
    const create = ${JSON.stringify(newThread('elsewhere'))}
    await store.commit({ point: 'test', threads: [{ id: 'elsewhere', create }] })
    console.log('open')
    setInterval(() => {}, 1000)`
  const child = spawn(
    process.execPath,
    ['--conditions=@skein/source', '--input-type=module-typescript', '-e', program],
    { stdio: ['ignore', 'pipe', 'inherit'] },
  )
  await once(child.stdout, 'data')
  return child
}

describe('what the store remembers of its tables', () => {
  const bytes = new TextEncoder().encode('the settings of a model')
  const hash = sha256Hex(bytes)
  const naming = (id: string) => ({
    point: 'test',
    threads: [{ id, append: [valueSet(hash)] }],
    blobs: [{ hash, bytes }],
  })

  test.each(['remove', 'erase'] as const)(
    'a content that went with its thread (%s) is written again',
    async (how) => {
      const path = newPath()
      const store = sqliteStore({ path })
      await addThreads(store, 'a', 'b')
      await store.commit(naming('a'))
      await store.commit(naming('a'))
      await (how === 'remove' ? store.remove('a') : store.erase('a', []))
      expect(await store.blob(hash)).toBeUndefined()
      await store.commit(naming('b'))
      expect(await store.blob(hash)).toEqual(bytes)
      await store.close()
    },
  )

  test('a thread keeps a content that another thread has named before', async () => {
    const store = sqliteStore({ path: newPath() })
    await addThreads(store, 'a', 'b')
    await store.commit(naming('a'))
    await store.commit(naming('b'))
    await store.remove('a')
    expect(await store.blob(hash)).toEqual(bytes)
    await store.close()
  })

  test('a commit that was undone has left nothing that the next one relies on', async () => {
    const store = sqliteStore({ path: newPath(), maxBytes: 500_000 })
    await addThreads(store, 'a')
    const audit = [{ tree: 'a', requestId: 'one', seq: 0, line: '{}' }]
    const big = { hash: sha256Hex('big'), bytes: new Uint8Array(1_000_000) }
    const refused = store.commit({ ...naming('a'), blobs: [{ hash, bytes }, big], audit })
    await expect(refused).rejects.toMatchObject({ code: 'STORE_FULL' })
    expect(await store.blob(hash)).toBeUndefined()
    await store.commit({ ...naming('a'), audit })
    expect(await store.blob(hash)).toEqual(bytes)
    expect(await store.audit('a')).toHaveLength(1)
    await store.close()
  })

  test('a line of a request is refused twice also when the request went on, and after a removal', async () => {
    const store = sqliteStore({ path: newPath() })
    await addThreads(store, 'a', 'b')
    const line = (tree: string, seq: number) =>
      store.commit({
        point: 'test',
        threads: [],
        audit: [{ tree, requestId: 'one', seq, line: '{}' }],
      })
    await line('a', 0)
    await line('a', 3)
    await line('a', 1)
    for (const seq of [0, 1, 3])
      await expect(line('a', seq)).rejects.toMatchObject({ code: 'STATE_CONFLICT' })
    await store.remove('a')
    await line('b', 0)
    expect(await store.audit('b')).toHaveLength(1)
    await store.close()
  })

  test('the counts of threads and tokens are right after one commit that changes several threads', async () => {
    const store = sqliteStore({ path: newPath() })
    await addThreads(store, 'a', 'b', 'c')
    await store.commit({
      point: 'test',
      threads: [
        { id: 'a', head: { lifecycle: 'running', tokens: 5 } },
        { id: 'b', head: { lifecycle: 'running', tokens: 7 } },
      ],
    })
    await store.commit({ point: 'test', threads: [{ id: 'b', head: { lifecycle: 'idle' } }] })
    const { threads, tokens } = await store.totals()
    expect({ running: threads.get('running'), idle: threads.get('idle'), tokens }).toEqual({
      running: 1,
      idle: 2,
      tokens: 12,
    })
    await store.close()
  })
})
