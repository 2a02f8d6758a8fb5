import { spawn } from 'node:child_process'
import {
  appendFileSync,
  mkdtempSync,
  readFileSync,
  rmSync,
  statSync,
  truncateSync,
  writeFileSync,
} from 'node:fs'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { afterAll, expect, test } from 'vitest'
import { seededRandom } from '@skein/base'
import { entriesOf, requestId, wovenEntries } from '../../test/sample-log.ts'
import { fileLog, type FileLog, type FileLogOptions } from './file-log-node.ts'
import { readCheckpoints, verifyLogFolder } from './read-folder-node.ts'
import { parseCheckpoint } from './checkpoint.ts'
import { generateKey } from '../keys/keys.ts'
import { leafHash, verifyInclusion } from './merkle.ts'

const folder = mkdtempSync(join(tmpdir(), 'skein-log-'))
afterAll(() => rmSync(folder, { recursive: true }))
const { privateJwk, publicJwk } = await generateKey()
let count = 0
const fresh = (): string => join(folder, String(count++))
const open = (dir: string, options: Partial<FileLogOptions> = {}): Promise<FileLog> =>
  fileLog({ dir, origin: 'test', key: privateJwk, ...options })
const entriesFile = (dir: string): string => join(dir, 'entries.ndjson')

async function collect<T>(items: AsyncIterable<T>): Promise<T[]> {
  const all: T[] = []
  for await (const item of items) all.push(item)
  return all
}

async function filled(requests: number, options: Partial<FileLogOptions> = {}): Promise<string> {
  const dir = fresh()
  const log = await open(dir, options)
  for (const entry of wovenEntries(requests)) await log.append(entry)
  await log.close()
  return dir
}

test('entries stand in the file in order, are read back, and the log goes on after it is opened again', async () => {
  const dir = await filled(3)
  const log = await open(dir)
  expect(log.size).toBe(33)
  for (const entry of entriesOf(3))
    expect(await log.append(entry, { durable: true })).toBe(33 + entry.seq)
  const all = await collect(log.read())
  expect(all.map(({ line }) => line)).toEqual(
    [...wovenEntries(3), ...entriesOf(3)].map(({ line }) => line),
  )
  expect(all.map(({ index }) => index)).toEqual(all.map((_, index) => index))
  const own = await collect(log.read({ requestId: requestId(1) }))
  expect(own.map(({ index }) => index)).toEqual(Array.from({ length: 11 }, (_, seq) => seq * 3 + 1))
  expect(await collect(log.read({ requestId: requestId(1), from: 20 }))).toHaveLength(4)
  expect(await collect(log.read({ requestId: requestId(99) }))).toEqual([])
  await log.close()
  expect(await verifyLogFolder(dir, { keys: [publicJwk] })).toMatchObject({
    ok: true,
    size: 44,
    sealed: 44,
  })
  expect(statSync(entriesFile(dir)).mode & 0o777).toBe(0o600)
})

test('an entry that another writer already wrote is refused with STATE_CONFLICT', async () => {
  const dir = await filled(1)
  const log = await open(dir)
  const write = async (seq: number): Promise<unknown> => log.append({ ...entriesOf(0)[0]!, seq })
  for (const seq of [0, 10, 12])
    await expect(write(seq)).rejects.toMatchObject({ code: 'STATE_CONFLICT' })
  await expect(
    (async () => log.append({ ...entriesOf(5)[0]!, line: 'a\nb' }))(),
  ).rejects.toMatchObject({ code: 'SCHEMA_INVALID' })
  expect(log.size).toBe(11)
  await log.close()
})

test('checkpoints come by count, by wish and at the end, and proofs verify against them', async () => {
  const dir = fresh()
  const log = await open(dir, { sealEvery: 10 })
  for (const entry of wovenEntries(2)) await log.append(entry, { seal: entry.seq === 6 })
  const checkpoint = await log.seal()
  expect(await log.seal()).toBe(checkpoint)
  const { root, size } = parseCheckpoint(checkpoint)!
  const proof = (await log.prove(7, size)).map(
    (hash) => new Uint8Array(Buffer.from(hash, 'base64')),
  )
  const line = (await collect(log.read({ from: 7 })))[0]!.line
  expect(verifyInclusion({ leaf: leafHash(line), index: 7, size, root, proof })).toBe(true)
  await log.close()
  const sizes = (await collect(readCheckpoints(dir))).map((text) => parseCheckpoint(text)!.size)
  expect(sizes.at(-1)).toBe(22)
  expect(sizes.length).toBeGreaterThan(1)
})

test('many durable entries share a sync', async () => {
  const log = await open(fresh())
  const entries = Array.from({ length: 64 }, (_, number) => entriesOf(number)[0]!)
  const indices = await Promise.all(entries.map((entry) => log.append(entry, { durable: true })))
  expect(indices).toEqual(indices.map((_, index) => index))
  expect(log.syncs).toBe(1)
  for (let number = 0; number < 5; number++)
    await log.append(entriesOf(number)[1]!, { durable: true })
  expect(log.syncs).toBe(6)
  await log.close()
})

test('half a line at the end, from a crash, is removed; the log is then whole', async () => {
  const dir = await filled(2)
  appendFileSync(entriesFile(dir), entriesOf(7)[0]!.line.slice(0, 100))
  appendFileSync(join(dir, 'checkpoints.ndjson'), '"half')
  expect((await verifyLogFolder(dir, { keys: [publicJwk] })).faults).toMatchObject([
    { kind: 'torn' },
  ])
  const log = await open(dir)
  expect(log.tornBytes).toBe(100)
  await log.append(entriesOf(7)[0]!)
  await log.close()
  expect(await verifyLogFolder(dir, { keys: [publicJwk] })).toMatchObject({
    ok: true,
    size: 23,
    sealed: 23,
  })
})

test('a log that was changed or cut below its last checkpoint is not opened for writing', async () => {
  const changes: Array<(path: string, text: string) => void> = [
    (path, text) => writeFileSync(path, text.replace('agent-1', 'agent-2')),
    (path) => truncateSync(path, 500),
    (path, text) => writeFileSync(path, text.replace('{', '[')),
    (path) => writeFileSync(path, ''),
    (path, text) => writeFileSync(path, text.slice(0, text.lastIndexOf('\n', text.length - 2) + 1)),
  ]
  for (const change of changes) {
    const dir = await filled(2)
    change(entriesFile(dir), readFileSync(entriesFile(dir), 'utf8'))
    await expect(open(dir)).rejects.toMatchObject({ code: 'LOG_DAMAGED' })
    expect(await verifyLogFolder(dir, { keys: [publicJwk] })).toMatchObject({ ok: false })
  }
  await expect(open(await filled(1), { origin: 'other' })).rejects.toMatchObject({
    code: 'LOG_ORIGIN_MISMATCH',
  })
})

test('one writer at a time; a lock of a dead process is taken over', async () => {
  const dir = await filled(1)
  const log = await open(dir)
  await expect(open(dir)).rejects.toMatchObject({ code: 'LOG_LOCKED' })
  await log.close()
  writeFileSync(join(dir, 'lock'), '1\n')
  await expect(open(dir)).rejects.toMatchObject({ code: 'LOG_LOCKED' })
  writeFileSync(join(dir, 'lock'), '999999999\n')
  await (await open(dir)).close()
})

test('a log that cannot be written says so, and nothing is added', async () => {
  const log = await open(fresh())
  await log.append(entriesOf(0)[0]!)
  await log.close()
  await expect((async () => log.append(entriesOf(0)[1]!))()).rejects.toMatchObject({
    code: 'AUDIT_UNAVAILABLE',
  })
})

test('a seal that fails is told by seal, and by the next entry that asks for one', async () => {
  let isDown = true
  const cosign = async (checkpoint: string): Promise<string> => {
    if (isDown) throw new Error('witness down')
    return checkpoint
  }
  const log = await open(fresh(), { cosign })
  const entries = entriesOf(0)
  await log.append(entries[0]!, { seal: true })
  await expect(log.seal()).rejects.toThrow('witness down')
  await expect(log.append(entries[1]!, { seal: true, durable: true })).rejects.toThrow(
    'witness down',
  )
  isDown = false
  expect(await log.append(entries[2]!, { seal: true, durable: true })).toBe(2)
  await log.close()
})

test('a witness that returns another checkpoint is not believed', async () => {
  const other = (await open(await filled(2))).checkpoint!
  const log = await open(fresh(), { cosign: async () => other })
  await log.append(entriesOf(0)[0]!)
  await expect(log.seal()).rejects.toMatchObject({ code: 'AUDIT_UNAVAILABLE' })
  await expect(log.close()).rejects.toThrow()
})

test('kill -9 again and again loses no acknowledged entry', async () => {
  const kills = process.env['SKEIN_DEEP'] ? 100 : 4
  const random = seededRandom(9)
  const dir = fresh()
  let next = 0
  let acknowledged = 0
  for (let kill = 0; kill < kills; kill++) {
    const told = await appendUntilKilled(dir, next, 20 + random() * 200)
    const log = await open(dir, { origin: 'kill' })
    const records = await collect(log.read())
    const found = new Map(records.map(({ index, line }) => [index, line]))
    for (const [index, number, seq] of told) {
      expect(found.get(index!)).toBe(entriesOf(number!)[seq!]!.line)
      next = Math.max(next, number! + 1)
    }
    next++
    acknowledged += told.length
    await log.close()
    expect(await verifyLogFolder(dir, { keys: [publicJwk] })).toMatchObject({
      ok: true,
      faults: [],
    })
  }
  if (process.env['SKEIN_DEEP'])
    console.log(`${kills} kills, ${acknowledged} acknowledged entries, none lost`)
  expect(acknowledged).toBeGreaterThan(20)
}, 1_200_000)

/** Runs a writer, kills it a while after it began, and returns what it had acknowledged. */
async function appendUntilKilled(dir: string, from: number, afterMs: number): Promise<number[][]> {
  const child = spawn(
    process.execPath,
    [
      '--conditions=@skein/source',
      join(import.meta.dirname, '../../test/append-process.ts'),
      dir,
      String(from),
      JSON.stringify(privateJwk),
    ],
    { stdio: ['ignore', 'pipe', 'inherit'] },
  )
  let output = ''
  let timer: NodeJS.Timeout | undefined
  child.stdout.on('data', (chunk: Buffer) => {
    output += chunk
    timer ??= setTimeout(() => child.kill('SIGKILL'), afterMs)
  })
  await new Promise((resolve) => child.on('close', resolve))
  const lines = output.slice(0, output.lastIndexOf('\n')).split('\n')
  return lines.filter((line) => /^\d/.test(line)).map((line) => line.split(' ').map(Number))
}
