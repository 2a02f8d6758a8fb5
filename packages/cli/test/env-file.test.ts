import { mkdirSync, readFileSync, rmSync, writeFileSync } from 'node:fs'
import { join } from 'node:path'
import { describe, expect, test } from 'vitest'
import { skein, tempFolder } from './kit.ts'
import { project } from './project.ts'
import { apiKey, safeFolder, secretKey } from './safe-server.ts'

describe('.env of a project', { timeout: 60_000 }, () => {
  test('a path in it starts at its folder, also for a command that runs further down', async () => {
    const cwd = await safeFolder()
    const file = join(cwd, 'skein.config.json')
    const { governanceKeys, ...config } = JSON.parse(readFileSync(file, 'utf8')) as Record<
      string,
      unknown
    >
    writeFileSync(file, JSON.stringify(config))
    writeFileSync(
      join(cwd, '.env'),
      `SKEIN_SECRET_KEY=${secretKey}\nSKEIN_GOVERNANCE_KEYS=${String(governanceKeys)}\n`,
    )
    const below = join(cwd, 'src', 'deep')
    mkdirSync(below, { recursive: true })
    const check = ['serve', '--check', '--scripted']
    for (const folder of [cwd, below]) {
      const { code, stderr } = await skein(check, { cwd: folder })
      expect(stderr).toContain(`Safe to start: 127.0.0.1:0, ${join(cwd, '.skein', 'skein.db')}.`)
      expect(code).toBe(0)
    }
    // A variable of the environment starts where the command runs, as its shell completes it.
    const env = { SKEIN_GOVERNANCE_KEYS: 'governance.json' }
    const { stderr } = await skein(check, { cwd: below, env })
    expect(stderr).toContain(`${join(below, 'governance.json')} cannot be read`)
  })

  test('commands about stores use the store that it names, as serve does', async () => {
    const cwd = project({ '.env': 'SKEIN_STORE=sqlite:data/shop.db\n' })
    const { code, stderr } = await skein(['backup', 'all.jsonl'], { cwd })
    expect(stderr).toContain(join(cwd, 'data', 'shop.db'))
    expect(code).toBe(1)
  })
})

test('serve names unsafe settings and scripted models in one answer, and what to do about a script', async () => {
  const cwd = await safeFolder()
  rmSync(join(cwd, 'governance.json'))
  const { code, stderr } = await skein(['serve', '--check'], {
    cwd,
    env: { SKEIN_SECRET_KEY: secretKey },
  })
  expect(code).toBe(2)
  expect(stderr).toMatch(/governanceKeys: .* cannot be read/)
  expect(stderr).toMatch(
    /agents: agent "support": answers from a script \("\w+"\) and asks no vendor\. Give it the model of a vendor; in a project of `npm create skein`, put a key into \.env\. --scripted serves the script/,
  )
  expect(stderr).not.toContain(apiKey)
}, 60_000)

test('check says that it has checked the examples, where the project has no agents/', async () => {
  const cwd = tempFolder()
  const { stderr } = await skein(['check'], { cwd })
  expect(stderr).toContain(`${cwd} has no agents/, so the examples of Skein are used.`)
  const named = await skein(['check', '--json'], { cwd: project({ 'agents/.keep': '' }) })
  expect(named.stderr).not.toContain('examples')
}, 60_000)
