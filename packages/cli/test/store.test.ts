import { join } from 'node:path'
import { DatabaseSync } from 'node:sqlite'
import { describe, expect, test } from 'vitest'
import { exampleAgents, skein, tempFolder } from './kit.ts'

describe('store verify', { timeout: 60_000 }, () => {
  test('reads a whole store, names what is damaged, and says so in its exit code', async () => {
    const cwd = tempFolder()
    await skein(['run', 'support', 'Where is order O-7?', '--folder', exampleAgents], { cwd })
    const whole = await skein(['store', 'verify'], { cwd })
    expect(whole.stderr).toBe('')
    expect(whole.stdout).toMatch(/skein\.db: 1 threads, \d+ events, .*; no problem\.\n$/)
    expect(whole.code).toBe(0)
    const database = new DatabaseSync(join(cwd, '.skein', 'skein.db'))
    // The first event with the text is that of the queued message. Events are packed, but their words are not.
    const where = "WHERE id = (SELECT min(id) FROM events WHERE instr(json, CAST('O-7' AS BLOB)))"
    const [row] = database.prepare(`SELECT id & 4294967295 AS seq FROM events ${where}`).all()
    database.exec(
      `UPDATE events SET json = CAST(replace(hex(json), '4F2D37', '4F2D38') AS BLOB) ${where}`,
    )
    database.close()
    const damaged = await skein(['store', 'verify', '.skein', '--json'], { cwd })
    expect(damaged.code).toBe(1)
    const { problems } = JSON.parse(damaged.stdout) as { problems: string[] }
    expect(problems).toEqual([
      expect.stringMatching(new RegExp(`^Event ${Number(row!['seq'])} of thread`)),
    ])
  })

  test('a folder without a store is an error that names it', async () => {
    const { code, stderr } = await skein(['store', 'verify', 'nowhere'], { cwd: tempFolder() })
    expect(code).toBe(1)
    expect(stderr).toContain('nowhere')
  })
})

test(
  'the key of stored secrets comes from SKEIN_SECRET_KEY, else it is kept next to the store',
  { timeout: 60_000 },
  async () => {
    const cwd = tempFolder()
    const args = ['run', 'support', 'Where is order O-7?', '--folder', exampleAgents]
    const refused = await skein(args, { cwd, env: { SKEIN_SECRET_KEY: 'too short' } })
    expect(refused.code).toBe(1)
    expect(refused.stderr).toContain('openssl rand -base64 32')
    const key = Buffer.alloc(32, 7).toString('base64')
    const old = Buffer.alloc(32, 8).toString('base64')
    expect((await skein(args, { cwd, env: { SKEIN_SECRET_KEY: `${key},${old}` } })).code).toBe(0)
    expect((await skein(['thread', 'list', '--folder', exampleAgents], { cwd })).code).toBe(0)
  },
)
