import { mkdtempSync, readdirSync, rmSync, utimesSync, writeFileSync } from 'node:fs'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { afterAll, expect, test } from 'vitest'
import { lockFile } from './file-lock-node.ts'

const folder = mkdtempSync(join(tmpdir(), 'skein-file-lock-'))
afterAll(() => rmSync(folder, { recursive: true }))

test('a lock is held once, and free after it was released', () => {
  const path = join(folder, 'a.lock')
  const lock = lockFile(path)
  expect(lockFile(path)).toEqual({ heldBy: process.pid })
  if ('heldBy' in lock) throw new Error('The lock was free.')
  lock.unlock()
  expect(readdirSync(folder)).toEqual([])
})

test('a lock of this process id is dead only if it is older than this process', () => {
  const path = join(folder, 'b.lock')
  // As a worker thread of this process, or a second copy of the module, would write it.
  writeFileSync(path, `${process.pid} 0190aaaa-0000-7000-8000-000000000001\n`)
  expect(lockFile(path)).toEqual({ heldBy: process.pid })
  // As a process with the same id that ran before a restart would have left it.
  const before = new Date(Date.now() - (process.uptime() + 60) * 1000)
  utimesSync(path, before, before)
  expect(lockFile(path)).toHaveProperty('unlock')
})
