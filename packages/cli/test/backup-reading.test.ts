import { hash } from 'node:crypto'
import { mkdirSync } from 'node:fs'
import { afterEach, expect, test, vi } from 'vitest'
import { readBackup, writeBackup } from '../src/backup/backup-file.ts'
import { newPath } from './stores.ts'

afterEach(() => vi.restoreAllMocks())

async function read(path: string): Promise<number> {
  let rows = 0
  for await (const _ of readBackup(path)) rows++
  return rows
}

test('the bytes that are copied to read a content grow with its size, not with its square', async () => {
  let copied = 0
  const concat = Buffer.concat.bind(Buffer)
  vi.spyOn(Buffer, 'concat').mockImplementation((list, length) => {
    copied += list.reduce((sum, part) => sum + part.length, 0)
    return concat(list, length)
  })
  const copiedFor = async (size: number): Promise<number> => {
    const bytes = new Uint8Array(size).map((_, index) => index % 251)
    const file = newPath('jsonl')
    const about = { from: 'sqlite', at: '2026-01-02T03:04:05.678Z' }
    await writeBackup(file, [{ type: 'blob', hash: hash('sha256', bytes), bytes }], about)
    copied = 0
    expect(await read(file)).toBe(1)
    return copied
  }
  const [small, large] = [await copiedFor(2 * 1024 * 1024), await copiedFor(8 * 1024 * 1024)]
  expect(large).toBeLessThan(small * 4.4)
})

test.each(['jsonl', 'jsonl.gz'])(
  'a file .%s that cannot be read is an error with its name',
  async (ending) => {
    const folder = newPath(ending)
    mkdirSync(folder)
    const wanted = { code: 'FILE_UNREADABLE', message: `${folder} cannot be read: EISDIR.` }
    await expect(read(folder)).rejects.toMatchObject(wanted)
  },
)
