import { fork, spawn } from 'node:child_process'
import { mkdtempSync, readdirSync, rmSync, writeFileSync } from 'node:fs'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { afterAll, expect, test } from 'vitest'
import { generateKey } from '../keys/keys.ts'
import { lockFolder } from './folder-node.ts'
import { verifyLogFolder } from './read-folder-node.ts'
import { countOf } from '../../../../conformance/support/counts.ts'

const folder = mkdtempSync(join(tmpdir(), 'skein-lock-'))
afterAll(() => rmSync(folder, { recursive: true }))
const fresh = (): string => mkdtempSync(join(folder, 'log-'))
const refused = expect.objectContaining({ code: 'LOG_LOCKED' }) as Error
const id = '0190aaaa-0000-7000-8000-000000000001'
const alive = `${process.ppid}\n`
const dead = '999999999\n'
const processes = [1, 2, 3, 4]

interface Told {
  readonly locked: number
  readonly refused: number
  readonly shared: number
  readonly errors: readonly string[]
}

/** Starts processes that take the lock of one folder, lets them go on together, and returns what they tell. */
async function compete(links: string): Promise<Told[]> {
  const dir = fresh()
  const rounds = countOf({ fast: 60, all: 300, deep: 5000 })
  const children = processes.map(() =>
    fork(new URL('../../test/lock-process.ts', import.meta.url), [dir, String(rounds), links], {
      execArgv: ['--conditions=@skein/source'],
    }),
  )
  const next = (child: ReturnType<typeof fork>): Promise<unknown> =>
    new Promise((resolve, reject) =>
      child
        .once('message', resolve)
        .once('error', reject)
        .once('exit', (code) => code && reject(new Error(`The process ended with ${code}.`))),
    )
  await Promise.all(children.map(next))
  const told = children.map(next)
  for (const child of children) child.send('go')
  return (await Promise.all(told)) as Told[]
}

test.each(['links', 'no links'])(
  'of several processes one holds the lock at a time, also when a dead process left it (%s)',
  async (links) => {
    const told = await compete(links)
    expect(told).toMatchObject(processes.map(() => ({ shared: 0, errors: [] })))
    expect(told.reduce((sum, { locked }) => sum + locked, 0)).toBeGreaterThan(0)
  },
  60_000,
)

test('of several processes that open a log with a dead lock at the same time, one writes', async () => {
  const dir = fresh()
  const { privateJwk, publicJwk } = await generateKey()
  writeFileSync(join(dir, 'lock'), dead)
  const script = join(import.meta.dirname, '../../test/append-process.ts')
  const started = processes.map((number) => {
    const args = [script, dir, String(number), JSON.stringify(privateJwk)]
    const child = spawn(process.execPath, ['--conditions=@skein/source', ...args])
    let errors = ''
    child.stderr.on('data', (chunk: Buffer) => (errors += chunk))
    const ended = new Promise<string>((resolve) => child.on('close', () => resolve(errors)))
    const wrote = new Promise<string>((resolve) =>
      child.stdout.on('data', (chunk: Buffer) => /^\d/m.test(String(chunk)) && resolve('wrote')),
    )
    return { child, ended, told: Promise.race([wrote, ended]) }
  })
  const told = await Promise.all(started.map((one) => one.told))
  for (const { child } of started) child.kill('SIGKILL')
  await Promise.all(started.map(({ ended }) => ended))
  const refusals = told.filter((one) => one !== 'wrote')
  expect(refusals).toHaveLength(3)
  for (const one of refusals) expect(one).toContain('LOG_LOCKED')
  const { faults } = await verifyLogFolder(dir, { keys: [publicJwk] })
  expect(faults.filter(({ kind }) => kind !== 'torn')).toEqual([])
}, 60_000)

test('a lock that does not say yet whose it is counts as held', () => {
  for (const text of ['', '81']) {
    const dir = fresh()
    writeFileSync(join(dir, 'lock'), text)
    expect(() => lockFolder(dir)).toThrow(refused)
  }
})

test('a dead lock is left to the process that is replacing it, unless that one died, too', () => {
  const dir = fresh()
  writeFileSync(join(dir, 'lock'), `999999999 ${id}\n`)
  writeFileSync(join(dir, `lock.${id}`), alive)
  expect(() => lockFolder(dir)).toThrow(refused)
  writeFileSync(join(dir, `lock.${id}`), dead)
  const unlock = lockFolder(dir)
  expect(readdirSync(dir)).toEqual(['lock'])
  expect(() => lockFolder(dir)).toThrow(refused)
  unlock()
  expect(readdirSync(dir)).toEqual([])
})
