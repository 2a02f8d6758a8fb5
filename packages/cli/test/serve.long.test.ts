import { mkdirSync, writeFileSync } from 'node:fs'
import { join } from 'node:path'
import { describe, expect, test } from 'vitest'
import { skein, tempFolder } from './kit.ts'
import { refuses, safeFolder, secretKey } from './safe-server.ts'

describe('serve', { timeout: 90_000 }, () => {
  test.each([
    [{ SKEIN_SECRET_KEY: 'AAAA' }, 'secretKey: is not base64 of 32 bytes'],
    [{ SKEIN_SECRET_KEY: Buffer.alloc(32, 7).toString('base64') }, 'secretKey: is a key of a test'],
    [{ SKEIN_STORE: 'mysql://x' }, 'store: is neither sqlite:<file> nor postgres://'],
    [{ SKEIN_STORE: 'postgres://user:pw-canary@db/skein' }, 'add ?sslmode=verify-full'],
    [{ SKEIN_PORT: 'tcp://10.0.0.1:80' }, 'enableServiceLinks: false'],
    [{ SKEIN_AUTH_KEYS: '[' }, 'authKeys: SKEIN_AUTH_KEYS is not JSON.'],
    [{ SKEIN_PIN: 'thread' }, 'pin: "thread" is neither none nor session.'],
    [{ SKEIN_NODE_SECRET: 'short' }, 'nodeSecret: is shorter than 32 characters'],
    [{ SKEIN_GOVERNANCE_KEYS: 'nowhere.json' }, 'nowhere.json cannot be read (ENOENT)'],
  ])('refuses %o', refuses)

  test('a configuration in TypeScript is typed, and its paths belong to its folder', async () => {
    const cwd = await safeFolder()
    mkdirSync(join(cwd, 'deploy'))
    const text = `import { defineConfig } from 'skein'
      export default defineConfig({ agents: '../definitions', governanceKeys: '../governance.json',
        jwt: { jwks: 'https://issuer.example/keys', issuer: 'https://issuer.example', audience: 'skein' } })`
    writeFileSync(join(cwd, 'deploy', 'production.ts'), text)
    const args = ['serve', '--config', 'deploy/production.ts', '--scripted', '--check']
    const { code, stderr } = await skein(args, { cwd, env: { SKEIN_SECRET_KEY: secretKey } })
    expect(stderr).toContain('Safe to start')
    expect(code).toBe(0)
  })

  test('a model without a key, and a broken definition, keep it from starting', async () => {
    const cwd = tempFolder()
    writeDefinitions(cwd)
    const safe = await safeFolder(cwd)
    const env = { SKEIN_SECRET_KEY: secretKey }
    const { code, stderr } = await skein(['serve', '--check'], { cwd: safe, env })
    expect(code).toBe(2)
    expect(stderr).toContain('ANTHROPIC_API_KEY is not set')
  })
})

function writeDefinitions(folder: string): void {
  mkdirSync(join(folder, 'agents'))
  mkdirSync(join(folder, 'prompts'))
  writeFileSync(
    join(folder, 'agents', 'poet.ts'),
    `import { defineAgent } from '@skein/runtime'
    export default defineAgent({ name: 'poet', type: 'ai_human', sideA: { prompt: 'poet' } })`,
  )
  writeFileSync(
    join(folder, 'prompts', 'poet.ts'),
    `import { anthropic } from '@skein/ai/anthropic'
    import { definePrompt } from '@skein/runtime'
    export default definePrompt({ name: 'poet', prompt: 'Write.', model: anthropic('claude-x') })`,
  )
}
