import { mkdtempSync, rmSync } from 'node:fs'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { afterAll, beforeAll, expect, test } from 'vitest'
import type { AuditExport, AuditPage } from '../../../runtime/src/contract/audit-export.ts'
import { memoryGovernanceKeys, sqliteStore, verifyAudit, type Store } from '@skein/runtime'
import { AuditReader, exportAudit } from '../../../runtime/src/governance/audit-export.ts'
import { newThread, valueSet } from '../../../runtime/src/testing/contract.ts'
import { startKit, type Kit } from '../http/http-kit.ts'

const folder = mkdtempSync(join(tmpdir(), 'skein-audit-'))
const LINES = 1234
let store: Store
let kit: Kit
const keys = memoryGovernanceKeys()

const line = (seq: number): string => {
  const entry = { entry_id: `e${seq}`, request_id: 'r', sequence: seq, text: `line ${seq} ✓` }
  return JSON.stringify(entry)
}
const add = (tree: string, from: number, to: number): Promise<unknown> =>
  store.commit({
    point: 'test',
    threads: [],
    audit: Array.from({ length: to - from }, (_, index) => {
      const seq = from + index
      return { tree, requestId: `r of ${tree}`, seq, line: line(seq) }
    }),
  })

beforeAll(async () => {
  store = sqliteStore({ path: join(folder, 'skein.db') })
  kit = await startKit({
    runtime: { store, secretKey: new Uint8Array(32), keys: await keys },
  })
  await store.commit({ point: 'test', threads: [{ id: 't', create: newThread('t') }] })
  await add('t', 0, LINES)
})
afterAll(async () => {
  await kit.stop()
  await store.close()
  rmSync(folder, { recursive: true, force: true })
})

async function pages(query: string): Promise<AuditPage[]> {
  const all: AuditPage[] = []
  for (let cursor = ''; ;) {
    const page = await kit.json<AuditPage>('acme', 'GET', `/threads/t/audit?${query}${cursor}`)
    all.push(page)
    if (page.nextCursor === undefined) return all
    cursor = `&cursor=${page.nextCursor}`
  }
}

test('the pages of an audit log, and the whole log, have the same lines and a checkpoint of all of them', async () => {
  const whole = await kit.json<AuditExport>('acme', 'GET', '/threads/t/audit')
  expect(whole.lines).toHaveLength(LINES)
  expect(whole.lines[700]).toBe(line(700))
  const all = await pages('limit=500')
  expect(all.map(({ from, lines }) => [from, lines.length])).toEqual([
    [0, 500],
    [500, 500],
    [1000, 234],
  ])
  expect(all.flatMap(({ lines }) => lines)).toEqual(whole.lines)
  expect(all.slice(0, -1).every(({ checkpoint }) => checkpoint === undefined)).toBe(true)
  const { checkpoint, publicKey } = all.at(-1)!
  const joined = { tree: 't', lines: all.flatMap((one) => one.lines), checkpoint: checkpoint! }
  const verify = (audit: AuditExport) => verifyAudit(audit, { keys: [publicKey] })
  // The lines are no entries of a governor; their seals are what counts here.
  const faults = (verdict: Awaited<ReturnType<typeof verify>>) =>
    verdict.faults.filter(({ kind }) => kind !== 'semantics')
  for (const audit of [whole, { ...joined, publicKey }]) {
    const verdict = await verify(audit)
    expect([verdict.sealed, faults(verdict)]).toEqual([LINES, []])
  }
  const changed = { ...whole, lines: whole.lines.with(3, line(4)) }
  expect((await verify(changed)).ok).toBe(false)
})

test('a page reads only its lines, and a checkpoint hashes only lines that are new', async () => {
  const read: number[] = []
  const counting: Pick<Store, 'audit' | 'head'> = {
    head: (id) => store.head(id),
    async audit(tree, options) {
      const rows = await store.audit(tree, options)
      read.push(rows.length)
      return rows
    },
  }
  const reader = new AuditReader(counting, await keys)
  const first = await reader.page('t', { limit: 10 })
  expect([first.lines.length, first.next, read]).toEqual([10, 10, [11]])
  await reader.page('t', { from: LINES - 5, limit: 10 })
  read.length = 0
  await add('t', LINES, LINES + 2)
  const last = await reader.page('t', { from: LINES, limit: 10 })
  expect(last.lines).toEqual([line(LINES), line(LINES + 1)])
  expect(read).toEqual([2, 2]) // the page, and the same lines for the hash tree
  read.length = 0
  const { lines } = await reader.page('t', { limit: LINES })
  expect(lines).toHaveLength(LINES)
  expect(read).toEqual([500, 500, LINES + 1 - 1000]) // parts, so that a long page does not block the process
  const { checkpoint } = await exportAudit(store, 't', await keys)
  // The signature differs each time; the size and the root do not.
  expect(last.checkpoint!.split('\n').slice(0, 3)).toEqual(checkpoint.split('\n').slice(0, 3))
})

test('a log that was removed and made again has a hash tree of its own', async () => {
  const reader = new AuditReader(store, await keys)
  const make = async (text: string): Promise<string> => {
    await store.commit({ point: 'test', threads: [{ id: 'again', create: newThread('again') }] })
    const audit = [{ tree: 'again', requestId: 'r', seq: 0, line: text }]
    await store.commit({ point: 'test', threads: [], audit })
    return (await reader.page('again')).checkpoint!.split('\n')[2]!
  }
  const before = await make('{"n":1}')
  await store.remove('again')
  expect(await make('{"n":2}')).not.toBe(before)
})

test('a cursor of another log is refused', async () => {
  await store.commit({ point: 'test', threads: [{ id: 'u', create: newThread('u') }] })
  const { nextCursor } = await kit.json<AuditPage>('acme', 'GET', '/threads/t/audit?limit=1')
  for (const cursor of [nextCursor!, 'x', 'WyJ1IiwtMV0']) {
    const response = await kit.ask('acme', 'GET', `/threads/u/audit?cursor=${cursor}`)
    expect([response.status, await response.json()], cursor).toMatchObject([
      400,
      { error: { code: 'INPUT_INVALID' } },
    ])
  }
})

test('an export reads a part of the log at a time and can be imported', async () => {
  const { threads } = kit.runtime
  const { id } = await threads.create({ agent: 'desk', tenant: 'acme', message: 'note' })
  await threads.settled(id)
  await threads.files.write(id, '/a.txt', new TextEncoder().encode('file'))
  for (let index = 0; index < 900; index += 300) {
    const append = Array.from({ length: 300 }, (_, at) => valueSet(index + at))
    await store.commit({ point: 'test', threads: [{ id, append }] })
  }
  const whole = await threads.export(id)
  const parts: string[] = []
  for await (const part of threads.exportLines(id)) parts.push(part)
  const body = (text: string): string => text.slice(text.indexOf('\n')) // the first line has the time
  expect(body(parts.join(''))).toBe(body(whole))
  expect(parts.length).toBeGreaterThan(5)
  const response = await kit.ask('acme', 'GET', `/threads/${id}/export`)
  expect(body(await response.text())).toBe(body(whole))
  const copy = await threads.import(whole, { tenant: 'acme' })
  expect(await threads.values.get(copy.id, 'k')).toBe(899)
  expect(new TextDecoder().decode((await threads.files.read(copy.id, '/a.txt')).bytes)).toBe('file')
})

test('an export of a thread that is erased meanwhile ends with an error', async () => {
  const { threads } = kit.runtime
  const { id } = await threads.create({ agent: 'desk', tenant: 'acme', message: 'hello' })
  await threads.settled(id)
  const lines = threads.exportLines(id)[Symbol.asyncIterator]()
  await lines.next()
  await threads.erase(id)
  await expect(lines.next()).rejects.toMatchObject({ code: 'THREAD_NOT_FOUND' })
})
