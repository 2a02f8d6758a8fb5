import { hash, randomBytes } from 'node:crypto'
import { join } from 'node:path'
import { expect, test } from 'vitest'
import { sqliteStore } from '@skein/runtime'
import { skein, tempFolder } from '../kit.ts'
import { pty, Terminal } from './terminal.ts'

test.skipIf(typeof pty === 'string')(
  'commands that read a whole store show bytes on a terminal, and nothing in a pipe',
  async () => {
    const cwd = tempFolder()
    const store = sqliteStore({ path: join(cwd, 'big.db') })
    const contents = Array.from({ length: 8 }, () => randomBytes(1024 * 1024))
    const blobs = contents.map((bytes) => ({ hash: hash('sha256', bytes), bytes }))
    await store.commit({ point: 'test', threads: [], blobs })
    await store.close()
    for (const [args, ...shown] of [
      ['backup all.jsonl.gz --store sqlite:big.db', 'reading the store', 'checking the file'],
      ['restore all.jsonl.gz --store sqlite:again/skein.db', 'restoring', 'checking the copy'],
      ['store copy sqlite:big.db sqlite:copy/skein.db', 'copying', 'checking the copy'],
      ['store verify again', 'checking'],
    ]) {
      const terminal = new Terminal(args!.split(' '), { cwd })
      expect(await terminal.ended, terminal.output).toBe(0)
      for (const what of shown)
        expect(terminal.output).toMatch(
          new RegExp(`${what}: [\\d.]+ k?M?B of (?:8|9|1\\d)\\.\\d MB`),
        )
      // The line of the result has the terminal for itself.
      expect(
        terminal.output
          .trimEnd()
          .split(/[\r\n]/)
          .at(-1),
      ).toMatch(/verified\.|no problem\.$/)
    }
    const { stderr, stdout } = await skein(
      ['store', 'copy', 'sqlite:big.db', 'sqlite:other/skein.db'],
      {
        cwd,
      },
    )
    expect(stdout + stderr).toMatch(/8 contents/)
    expect(stdout + stderr).not.toMatch(/ MB/)
  },
)
