import { mkdtemp, open, rm, type FileHandle } from 'node:fs/promises'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { afterAll, beforeAll, expect, test, vi } from 'vitest'
import { AgentState } from '../index.ts'
import { fileCheckpoints } from './index.ts'

let dir = ''
beforeAll(async () => void (dir = await mkdtemp(join(tmpdir(), 'skein-fsync-'))))
afterAll(() => rm(dir, { recursive: true }))

/** Counts how often files are flushed to the disk while `work` runs. */
async function syncs(work: () => Promise<unknown>): Promise<number> {
  const handle = await open(join(dir, 'probe'), 'w')
  const spy = vi.spyOn(Object.getPrototypeOf(handle) as FileHandle, 'sync')
  try {
    await work()
    return spy.mock.calls.length
  } finally {
    spy.mockRestore()
    await handle.close()
  }
}

const state = AgentState.initial().toJSON()
const entry = { toolCallId: 'a', message: { type: 'tool_result', results: [] } as never }

test('a checkpoint and each recorded call are flushed to the disk, unless fsync is false', async () => {
  const safe = fileCheckpoints({ dir, journal: true })
  expect(await syncs(() => safe.save('s', state))).toBe(1)
  expect(await syncs(() => safe.record!('s', entry))).toBe(1)
  const quick = fileCheckpoints({ dir, journal: true, fsync: false })
  expect(await syncs(() => quick.save('s', state))).toBe(0)
  expect(await syncs(() => quick.record!('s', entry))).toBe(0)
})
