import { type ChildProcess, fork, spawn } from 'node:child_process'
import {
  appendFileSync,
  existsSync,
  mkdtempSync,
  readFileSync,
  rmSync,
  statSync,
  writeFileSync,
} from 'node:fs'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { fileURLToPath } from 'node:url'
import { afterAll, describe, expect, test } from 'vitest'
import { userTurn } from '../../test/samples.ts'
import { openThreadLogFile } from './thread-log-node.ts'

const folder = mkdtempSync(join(tmpdir(), 'thread-log-'))
afterAll(() => rmSync(folder, { recursive: true }))

const head = {
  version: '2.0.0',
  thread_id: 't',
  created_at: '2026-01-01T00:00:00Z',
  agents: {},
} as const

describe('the thread log in a file', () => {
  test('survives a restart, and only its owner may read it', async () => {
    const path = join(folder, 'a.jsonl')
    const log = await openThreadLogFile(path, { thread: head })
    await log.append(userTurn('one'), { sync: true })
    await log.close()
    const again = await openThreadLogFile(path)
    expect(again.thread().turns).toEqual([userTurn('one')])
    await again.close()
    expect(statSync(path).mode & 0o077).toBe(0)
  })

  test('another process that writes is noticed', async () => {
    const path = join(folder, 'b.jsonl')
    const log = await openThreadLogFile(path, { thread: head })
    appendFileSync(path, 'x')
    await expect(log.append(userTurn('one'))).rejects.toMatchObject({ code: 'LOG_CONFLICT' })
    await log.close()
  })

  test('two processes that append at the same time lose no turn that was accepted', async () => {
    const path = join(folder, 'two.jsonl')
    for (let round = 0; round < 3; round++) {
      rmSync(path, { force: true })
      await (await openThreadLogFile(path, { thread: head })).close()
      const accepted = await appendTogether(path, ['a', 'b'], 150)
      const log = await openThreadLogFile(path)
      const ids = log.thread().turns.map((turn) => (turn as { turn_id?: string }).turn_id)
      await log.close()
      expect(ids.toSorted()).toEqual(accepted.flat().toSorted())
      expect(existsSync(`${path}.lock`)).toBe(false)
    }
  }, 60_000)

  test('while one log has written and is open, another can be read but not appended to', async () => {
    const path = join(folder, 'held.jsonl')
    const first = await openThreadLogFile(path, { thread: head })
    await first.append(userTurn('one'))
    const second = await openThreadLogFile(path)
    expect(second.thread().turns).toEqual([userTurn('one')])
    await expect(second.append(userTurn('two'))).rejects.toMatchObject({ code: 'LOG_CONFLICT' })
    await first.append(userTurn('three'))
    await first.close()
    // The first log has grown since the second was opened.
    await expect(second.append(userTurn('two'))).rejects.toMatchObject({ code: 'LOG_CONFLICT' })
    await second.close()
    const third = await openThreadLogFile(path)
    expect(await third.append(userTurn('two'))).toBe(3)
    await third.close()
  })

  test('the lock of a process that died is taken over, that of a running process is not', async () => {
    const path = join(folder, 'dead.jsonl')
    const log = await openThreadLogFile(path, { thread: head })
    await log.close()
    writeFileSync(`${path}.lock`, '999999999\n')
    const again = await openThreadLogFile(path)
    expect(await again.append(userTurn('one'))).toBe(1)
    await again.close()
    writeFileSync(`${path}.lock`, `${process.ppid}\n`)
    const third = await openThreadLogFile(path)
    await expect(third.append(userTurn('two'))).rejects.toMatchObject({ code: 'LOG_CONFLICT' })
    await third.close()
  })

  test('a half-written line of a running writer is not cut off by a reader', async () => {
    const path = join(folder, 'half.jsonl')
    const log = await openThreadLogFile(path, { thread: head })
    await log.append(userTurn('one'))
    await log.close()
    writeFileSync(`${path}.lock`, `${process.ppid}\n`)
    appendFileSync(path, '{"sum":"')
    const { size } = statSync(path)
    const reader = await openThreadLogFile(path)
    expect(reader.length).toBe(1)
    await reader.close()
    expect(statSync(path).size).toBe(size)
  })

  test('a file that is no log is refused and left alone', async () => {
    const path = join(folder, 'c.jsonl')
    writeFileSync(path, 'my shopping list\n')
    await expect(openThreadLogFile(path, { thread: head })).rejects.toMatchObject({
      code: 'LOG_CORRUPT',
    })
    expect(readFileSync(path, 'utf8')).toBe('my shopping list\n')
  })

  test('kill -9 in the midst of appending loses nothing that was acknowledged', async () => {
    const path = join(folder, 'd.jsonl')
    let acknowledged = 0
    for (let round = 0; round < 3; round++) {
      acknowledged = await appendUntilKilled(path, acknowledged + 40 + round * 7)
      const log = await openThreadLogFile(path)
      expect(log.length).toBeGreaterThanOrEqual(acknowledged)
      const numbers = log.thread().turns.map((turn) => (turn as { turn_id?: string }).turn_id)
      expect(numbers).toEqual(numbers.map((_, index) => `n${index}`))
      acknowledged = log.length
      await log.close()
    }
  }, 30_000)
})

/** Starts processes that append `count` turns each, lets them begin together, and returns the ids of their turns. */
async function appendTogether(path: string, names: readonly string[], count: number) {
  const script = fileURLToPath(new URL('../../test/append-process.ts', import.meta.url))
  const children = names.map((name) =>
    fork(script, [path, name, String(count)], { execArgv: ['--conditions=@skein/source'] }),
  )
  const next = (child: ChildProcess): Promise<unknown> =>
    new Promise((resolve, reject) =>
      child
        .once('message', resolve)
        .once('error', reject)
        .once('exit', (code) => code && reject(new Error(`The process ended with ${code}.`))),
    )
  await Promise.all(children.map(next))
  const accepted = children.map(next)
  for (const child of children) child.send('go')
  return (await Promise.all(accepted)) as string[][]
}

/** Runs a process that appends for ever and kills it once it has acknowledged `count`; returns what it acknowledged. */
function appendUntilKilled(path: string, count: number): Promise<number> {
  const module = fileURLToPath(new URL('./thread-log-node.ts', import.meta.url))
  const script = `
    const { openThreadLogFile } = await import(${JSON.stringify(module)})
    const log = await openThreadLogFile(${JSON.stringify(path)}, { thread: ${JSON.stringify(head)} })
    for (;;) {
      const turn_id = 'n' + log.length
      const parts = [{ part_kind: 'user-prompt', content: 'x'.repeat(Math.random() * 5000) }]
      const length = await log.append({ turn_type: 'user', turn_id, submitted_at: '2026-01-01T00:00:00Z', parts })
      process.stdout.write(length + '\\n')
    }`
  const child = spawn(process.execPath, [
    '--conditions=@skein/source',
    '--input-type=module',
    '-e',
    script,
  ])
  return new Promise((resolve, reject) => {
    let output = ''
    child.stderr.on('data', (data: Buffer) => reject(new Error(data.toString())))
    child.stdout.on('data', (data: Buffer) => {
      output += data.toString()
      if (last(output) >= count) child.kill('SIGKILL')
    })
    child.on('close', () => resolve(last(output)))
    child.on('error', reject)
  })
}

/** The last number of which the line feed has arrived. */
function last(output: string): number {
  return Number(output.slice(0, output.lastIndexOf('\n')).split('\n').at(-1) ?? 0)
}
