import { spawn } from 'node:child_process'
import { appendFileSync, mkdtempSync, readFileSync, rmSync, statSync, writeFileSync } from 'node:fs'
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
