import { createHash, randomBytes } from 'node:crypto'
import { symlinkSync, writeFileSync } from 'node:fs'
import { join } from 'node:path'
import { expect } from 'vitest'
import { exampleAgents, skein, tempFolder } from './kit.ts'

export const apiKey = 'a-key-of-this-test-that-is-long-enough'
export const secretKey: string = randomBytes(32).toString('base64')
const sha256 = createHash('sha256').update(apiKey).digest('hex')

/** A folder in which `serve` is allowed to start. */
export async function safeFolder(
  agents: string = exampleAgents,
  more: object = {},
): Promise<string> {
  const cwd = tempFolder()
  symlinkSync(agents, join(cwd, 'definitions'))
  expect((await skein(['keys', 'governance.json'], { cwd })).code).toBe(0)
  const config = {
    agents: 'definitions',
    port: 0,
    governanceKeys: 'governance.json',
    authKeys: [{ sha256, tenant: 'acme', scopes: ['admin'] }],
    ...more,
  }
  writeFileSync(join(cwd, 'skein.config.json'), JSON.stringify(config))
  return cwd
}

/** Checks that a server with these variables refuses to start, and says why. */
export async function refuses(
  env: Readonly<Record<string, string>>,
  reason: string,
): Promise<void> {
  const cwd = await safeFolder()
  const all = { SKEIN_SECRET_KEY: secretKey, ...env }
  const { code, stderr } = await skein(['serve', '--scripted', '--check'], { cwd, env: all })
  expect(code).toBe(2)
  expect(stderr).toContain(reason)
  expect(stderr).not.toContain('pw-canary')
}
