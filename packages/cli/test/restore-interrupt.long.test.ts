import { existsSync, readdirSync } from 'node:fs'
import { join } from 'node:path'
import { expect, test } from 'vitest'
import { sqliteStore } from '@skein/runtime'
import { Running, skein, tempFolder } from './kit.ts'

test('Ctrl-C in restore and in store copy leaves no file of the new store', async () => {
  const cwd = tempFolder()
  const store = sqliteStore({ path: join(cwd, 'big.db') })
  for (let from = 0; from < 60_000; from += 1000) {
    const audit = Array.from({ length: 1000 }, (_, index) => {
      const seq = from + index
      return { tree: 't', requestId: 'r', seq, line: JSON.stringify({ seq, text: 'x'.repeat(99) }) }
    })
    await store.commit({ point: 'test', threads: [], audit })
  }
  await store.close()
  expect((await skein(['backup', 'all.jsonl', '--store', 'sqlite:big.db'], { cwd })).code).toBe(0)
  for (const [index, args] of [
    ['restore', 'all.jsonl', '--store', 'sqlite:new0.db'],
    ['store', 'copy', 'sqlite:big.db', 'sqlite:new1.db'],
    ['store', 'copy', 'sqlite:big.db', 'sqlite:new2.db'],
  ].entries()) {
    // The last one is interrupted while the copy, which is complete, is read again.
    const begun = index === 2 ? `new${index}.db` : `new${index}.db.part`
    const running = new Running(args, { cwd })
    while (!existsSync(join(cwd, begun))) await new Promise((resolve) => setTimeout(resolve, 5))
    running.signal('SIGINT')
    const { code, stderr } = await running.ended
    expect(readdirSync(cwd).filter((name) => name.startsWith('new'))).toEqual([])
    expect([code, stderr]).toEqual([130, expect.stringContaining('Nothing was written.')])
  }
}, 60_000)
