import { hash, randomBytes } from 'node:crypto'
import { existsSync, readdirSync } from 'node:fs'
import { join } from 'node:path'
import { expect, test } from 'vitest'
import { sqliteStore } from '@skein/runtime'
import { writeBackup } from '../src/backup/backup-file.ts'
import { Running, tempFolder } from './kit.ts'
import { newPath } from './stores.ts'

const about = { from: 'sqlite', at: '2026-01-02T03:04:05.678Z' }

test('Ctrl-C in backup leaves no file under its name, and no part of one', async () => {
  const cwd = tempFolder()
  const store = sqliteStore({ path: join(cwd, 'big.db') })
  const blobs = Array.from({ length: 24 }, () => randomBytes(2 * 1024 * 1024)).map((bytes) => ({
    hash: hash('sha256', bytes),
    bytes,
  }))
  await store.commit({ point: 'test', threads: [], blobs })
  await store.close()
  const args = ['backup', 'all.jsonl.gz', '--store', 'sqlite:big.db']
  const running = new Running(args, { cwd })
  while (!readdirSync(cwd).some((name) => name.startsWith('all')))
    await new Promise((resolve) => setTimeout(resolve, 5))
  running.signal('SIGINT')
  const { code, stderr } = await running.ended
  expect(readdirSync(cwd).filter((name) => name.startsWith('all'))).toEqual([])
  expect(code).toBe(130)
  expect(stderr).toContain('Nothing was written.')
}, 60_000)

test('a backup that is aborted between two rows, or fails, leaves nothing; its name stays free', async () => {
  const path = newPath('jsonl')
  const ending = new AbortController()
  const rows = async function* () {
    yield { type: 'setting', name: 'a', json: '1' } as const
    expect(existsSync(path)).toBe(false) // nothing that looks like a backup before there is one
    ending.abort(new Error('stopped'))
    for (let index = 0; index < 10_000; index++)
      yield { type: 'setting', name: `b${index}`, json: '1' } as const
  }
  await expect(writeBackup(path, rows(), about, { signal: ending.signal })).rejects.toThrow()
  const failing = function* () {
    yield { type: 'setting', name: 'a', json: '1' } as const
    throw new Error('the disk is gone')
  }
  await expect(writeBackup(path, failing(), about)).rejects.toThrow('the disk is gone')
  expect([existsSync(path), existsSync(`${path}.part`)]).toEqual([false, false])
  await writeBackup(path, [], about)
  await expect(writeBackup(path, [], about)).rejects.toMatchObject({ code: 'FILE_EXISTS' })
})
