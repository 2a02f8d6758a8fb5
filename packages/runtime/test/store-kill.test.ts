import { spawn } from 'node:child_process'
import { once } from 'node:events'
import { mkdtempSync, rmSync } from 'node:fs'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { afterAll, expect, test } from 'vitest'
import { seededRandom, sha256Hex } from '@skein/base'
import { sqliteStore } from '../src/store/sqlite/sqlite-store.ts'
import type { SqliteStore } from '../src/store/sqlite/sqlite-store.ts'
import { countOf } from '../../../conformance/support/counts.ts'

const rounds = countOf({ fast: 3, all: 12, deep: 200 })
const folder = mkdtempSync(join(tmpdir(), 'skein-kill-'))
const random = seededRandom(9)

afterAll(() => rmSync(folder, { recursive: true, force: true }))

/** Lets a writer go on until it has had that many answers and a moment more, and kills it. */
async function writeAndKill(path: string, first: number, answers: number): Promise<number[]> {
  const program = join(import.meta.dirname, 'store-writer.ts')
  const child = spawn(
    process.execPath,
    ['--conditions=@skein/source', program, path, String(first)],
    { stdio: ['ignore', 'pipe', 'pipe'] },
  )
  let out = ''
  let problem = ''
  let isKilling = false
  child.stderr.on('data', (chunk: Buffer) => (problem += chunk.toString()))
  child.stdout.on('data', (chunk: Buffer) => {
    out += chunk.toString()
    if (isKilling || out.split('\n').length <= answers) return
    isKilling = true
    // At any moment of the next commits, not always right after an answer.
    setTimeout(() => child.kill('SIGKILL'), random() * 15)
  })
  const [code, signal] = (await once(child, 'close')) as [number | null, string | null]
  expect({ code, signal, problem }).toEqual({ code: null, signal: 'SIGKILL', problem: '' })
  return out.split('\n').slice(0, -1).map(Number)
}

/** The numbers whose rows are there; each must be there with everything that was committed with it. */
async function wholeRows(store: SqliteStore): Promise<Set<number>> {
  const found: number[] = []
  for (const id of ['w0', 'w1', 'w2', 'w3']) {
    const events = await store.events(id)
    expect(events.length % 2, `events of ${id}`).toBe(0)
    const head = await store.head(id)
    expect(head?.seq).toBe(events.length)
    const numbers = events.flatMap(({ event }) => {
      const value = 'value' in event ? (event.value as { number?: number; text?: string }) : {}
      if (value.number === undefined) return []
      expect(value.text?.length).toBe((value.number * 131) % 3000)
      return [value.number]
    })
    if (numbers.length > 0) expect(head?.tokens).toBe(numbers.at(-1))
    found.push(...numbers)
  }
  const sorted = found.toSorted((a, b) => a - b)
  const sum = (await store.events('sum')).map(({ event }) => 'value' in event && event.value)
  const audit = (await store.audit('sum')).map(({ line }) => Number(line))
  expect(sum.toSorted((a, b) => Number(a) - Number(b))).toEqual(sorted)
  expect(audit.toSorted((a, b) => a - b)).toEqual(sorted)
  for (const number of sorted.slice(-20)) {
    const blob = await store.blob(sha256Hex(`blob ${number}`))
    expect(Buffer.from(blob ?? []).toString()).toBe(`blob ${number}`)
    const spent = [{ jti: `${number}`, exp: 1 }]
    await expect(store.commit({ point: 'check', threads: [], spent })).rejects.toMatchObject({
      code: 'TOKEN_SPENT',
    })
  }
  return new Set(sorted)
}

test(
  `kill -9 ${rounds} times: nothing that was answered is lost, nothing is half there`,
  { timeout: rounds * 5000 },
  async () => {
    const path = join(folder, 'store.db')
    const answered = new Set<number>()
    let unanswered = 0
    let first = 0
    for (let round = 0; round < rounds; round++) {
      const numbers = await writeAndKill(path, first, 1 + Math.floor(random() * 150))
      for (const number of numbers) answered.add(number)
      const store = sqliteStore({ path })
      expect(await store.check()).toEqual([])
      const rows = await wholeRows(store)
      expect([...answered].filter((number) => !rows.has(number))).toEqual([])
      unanswered = rows.size - answered.size
      first = Math.max(-1, ...rows) + 1
      await store.close()
    }
    expect(answered.size).toBeGreaterThan(rounds)
    // Four writers: at most four rows per kill were written but not yet answered.
    expect(unanswered).toBeLessThanOrEqual(4 * rounds)
  },
)
