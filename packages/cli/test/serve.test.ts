import { createHash, randomBytes } from 'node:crypto'
import { chmodSync, existsSync, mkdirSync, readFileSync, symlinkSync, writeFileSync } from 'node:fs'
import { join } from 'node:path'
import { describe, expect, test } from 'vitest'
import { SETTINGS, variableOf } from '../src/config/config.ts'
import { optionalPackage } from '../src/connect/connect.ts'
import { badAgents, exampleAgents, Running, skein, tempFolder } from './kit.ts'

const apiKey = 'a-key-of-this-test-that-is-long-enough'
const secretKey = randomBytes(32).toString('base64')
const sha256 = createHash('sha256').update(apiKey).digest('hex')

/** A folder in which `serve` is allowed to start. */
async function safeFolder(agents = exampleAgents, more: object = {}): Promise<string> {
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

interface Line {
  readonly level: number
  readonly msg: string
  readonly [name: string]: unknown
}

/** Every line of the log; fails if one is not JSON. */
function logOf({ stderr }: Pick<Running, 'stderr'>): Line[] {
  return stderr
    .trim()
    .split('\n')
    .map((line) => JSON.parse(line) as Line)
}

async function start(
  cwd: string,
  env: Readonly<Record<string, string>> = {},
): Promise<{ running: Running; url: string }> {
  const running = new Running(['serve'], { cwd, env: { SKEIN_SECRET_KEY: secretKey, ...env } })
  await running.until('stderr', '"listening"')
  const url = logOf(running).find(({ msg }) => msg === 'listening')!['url'] as string
  return { running, url }
}

const headers = { authorization: `Bearer ${apiKey}`, 'content-type': 'application/json' }

async function createThread(url: string, body: object): Promise<string> {
  const response = await fetch(`${url}/threads`, {
    method: 'POST',
    headers,
    body: JSON.stringify(body),
  })
  expect(response.status).toBe(201)
  return ((await response.json()) as { id: string }).id
}

describe('serve', { timeout: 90_000 }, () => {
  test('answers with a key only, is healthy and ready, and logs one line of JSON per request', async () => {
    const cwd = await safeFolder()
    const { running, url } = await start(cwd)
    expect((await fetch(`${url}/healthz`)).status).toBe(200)
    expect((await fetch(`${url}/readyz`)).status).toBe(200)
    expect((await fetch(`${url}/threads`)).status).toBe(401)
    const page = await fetch(`${url}/`, { headers: { accept: 'text/html' } })
    expect([page.status, page.url]).toEqual([200, `${url}/studio/`])
    expect(await page.text()).toContain('<title>Studio')
    expect((await fetch(`${url}/studio/me`)).status).toBe(401)
    const id = await createThread(url, { agent: 'support', message: 'Where is order O-7?' })
    const result = await fetch(`${url}/threads/${id}/result`, { headers })
    expect(((await result.json()) as { text: string }).text).toContain('O-7')
    running.signal('SIGTERM')
    expect((await running.ended).code).toBe(0)
    const log = logOf(running)
    const requests = log.filter(({ msg }) => msg === 'request')
    expect(requests.map(({ method, path, status }) => [method, path, status])).toEqual([
      ['GET', '/healthz', 200],
      ['GET', '/readyz', 200],
      ['GET', '/threads', 401],
      ['GET', '/', 302],
      ['GET', '/studio/', 200],
      ['GET', '/studio/me', 401],
      ['POST', '/threads', 201],
      ['GET', `/threads/${id}/result`, 200],
    ])
    expect(log.at(-1)).toMatchObject({ finished: 0, parked: 0, signal: 'SIGTERM' })
    expect(log.at(-1)!.msg).toBe('drained: 0 threads finished, 0 parked')
    expect(running.stderr).not.toContain(apiKey)
    expect(running.stderr).not.toContain(secretKey)
  })

  test('drains: a run that does not end in time is parked, and goes on at the next start', async () => {
    const cwd = await safeFolder(badAgents, { drainSeconds: 2 })
    const { running, url } = await start(cwd)
    const id = await createThread(url, { agent: 'stuck', message: 'begin' })
    await expect.poll(async () => lifecycle(url, id), { timeout: 20_000 }).toBe('running')
    running.signal('SIGINT')
    await running.until('stderr', '"draining"')
    expect((await running.ended).code).toBe(0)
    const log = logOf(running)
    expect(log.find(({ msg }) => msg === 'draining')).toMatchObject({
      threads: 1,
      signal: 'SIGINT',
    })
    expect(log.at(-1)).toMatchObject({ finished: 0, parked: 1 })
    const again = await start(cwd)
    expect(await lifecycle(again.url, id)).toBe('running')
    again.running.signal('SIGTERM')
    await again.running.until('stderr', '"draining"')
    again.running.signal('SIGTERM')
    expect((await again.running.ended).code).toBe(130)
    expect(again.running.stderr).toContain('ended at once by a second signal')
  })

  test('refuses every unsafe setting at once, with reasons', async () => {
    const cwd = tempFolder()
    writeFileSync(join(cwd, 'open.key'), secretKey, { mode: 0o600 })
    chmodSync(join(cwd, 'open.key'), 0o644)
    mkdirSync(join(cwd, '.skein', 'keys'), { recursive: true })
    const config = {
      host: '0.0.0.0',
      auth: 'none',
      authKeys: [{ key: 'short', tenant: '', scopes: ['everything'] }],
      jwt: { jwks: 'http://issuer.example/keys', issuer: 'x' },
      allowedHosts: ['*'],
      origins: ['*', 'http://app.example', 'https://app.example/path'],
      secretKeyFile: 'open.key',
      governanceKeys: '.skein/keys',
      engine: 'restate',
      nodeAddress: 'http://10.0.0.7:4111',
      limits: { maxStep: 3 },
      httpLimits: { maxBodyBytes: 0 },
      logLevel: 'loud',
      drainSeconds: 4000,
      prot: 1,
    }
    writeFileSync(join(cwd, 'skein.config.json'), JSON.stringify(config))
    const env = { SKEIN_PROXIES: 'two', NODE_TLS_REJECT_UNAUTHORIZED: '0' }
    const { code, stdout, stderr } = await skein(['serve'], { cwd, env })
    expect({ code, stdout }).toEqual({ code: 2, stdout: '' })
    for (const reason of [
      'prot: is not a setting. Did you mean port?',
      'proxies: SKEIN_PROXIES is not a whole number.',
      'agents: The folder',
      'allowedHosts: A server that answers to any name',
      'origins: "*" lets every page',
      'origins: "http://app.example" is not https',
      'origins: "https://app.example/path" is not an origin',
      'auth: "none" lets everybody in',
      'authKeys[0]: has no tenant.',
      'authKeys[0]: has the unknown scope "everything".',
      'authKeys[0]: is shorter than 24 characters',
      'jwt.audience: is missing',
      'jwt.jwks: is not https',
      'open.key can be read by every user',
      'has keys of development',
      'engine: restate needs PostgreSQL',
      'restateIngress: is missing',
      'nodeSecret: is missing',
      'nodeAddress: Several nodes need PostgreSQL',
      'limits.maxStep: is not a limit. Did you mean maxSteps?',
      'httpLimits.maxBodyBytes: is not a number above 0.',
      'logLevel: "loud"',
      'drainSeconds: is above 3600.',
      'NODE_TLS_REJECT_UNAUTHORIZED: is 0',
    ])
      expect(stderr).toContain(reason)
    expect(stderr).not.toContain(secretKey)
    expect(existsSync(join(cwd, '.skein', 'skein.db'))).toBe(false)
  })

  test.each([
    [{ SKEIN_HOST: '0.0.0.0' }, 'allowedHosts: is empty'],
    [{ SKEIN_SECRET_KEY: '' }, 'secretKey: is missing'],
    [{ SKEIN_SECRET_KEY: 'AAAA' }, 'secretKey: is not base64 of 32 bytes'],
    [{ SKEIN_SECRET_KEY: Buffer.alloc(32, 7).toString('base64') }, 'secretKey: is a key of a test'],
    [{ SKEIN_STORE: 'mysql://x' }, 'store: is neither sqlite:<file> nor postgres://'],
    [{ SKEIN_STORE: 'postgres://user:pw-canary@db/skein' }, 'add ?sslmode=verify-full'],
    [{ SKEIN_PORT: 'tcp://10.0.0.1:80' }, 'enableServiceLinks: false'],
    [{ SKEIN_AUTH_KEYS: '[' }, 'authKeys: SKEIN_AUTH_KEYS is not JSON.'],
    [{ SKEIN_PIN: 'thread' }, 'pin: "thread" is neither none nor session.'],
    [{ SKEIN_NODE_SECRET: 'short' }, 'nodeSecret: is shorter than 32 characters'],
    [{ SKEIN_GOVERNANCE_KEYS: 'nowhere.json' }, 'nowhere.json cannot be read (ENOENT)'],
  ])('refuses %o', async (env, reason) => {
    const cwd = await safeFolder()
    const all = { SKEIN_SECRET_KEY: secretKey, ...env }
    const { code, stderr } = await skein(['serve', '--check'], { cwd, env: all })
    expect(code).toBe(2)
    expect(stderr).toContain(reason)
    expect(stderr).not.toContain('pw-canary')
  })

  test('--check says that a safe configuration is safe, and opens nothing', async () => {
    const cwd = await safeFolder()
    const env = { SKEIN_SECRET_KEY: secretKey }
    const { code, stderr } = await skein(['serve', '--check'], { cwd, env })
    expect(stderr).toContain('Safe to start')
    expect(code).toBe(0)
    expect(existsSync(join(cwd, '.skein'))).toBe(false)
  })

  test('a configuration in TypeScript is typed, and its paths belong to its folder', async () => {
    const cwd = await safeFolder()
    mkdirSync(join(cwd, 'deploy'))
    const text = `import { defineConfig } from 'skein'
      export default defineConfig({ agents: '../definitions', governanceKeys: '../governance.json',
        jwt: { jwks: 'https://issuer.example/keys', issuer: 'https://issuer.example', audience: 'skein' } })`
    writeFileSync(join(cwd, 'deploy', 'production.ts'), text)
    const args = ['serve', '--config', 'deploy/production.ts', '--check']
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

  test('a package that is not installed is named with the command that installs it', async () => {
    const missing = optionalPackage('@skein/nowhere', 'store')
    await expect(missing).rejects.toMatchObject({
      code: 'PACKAGE_MISSING',
      hint: 'npm install @skein/nowhere',
    })
  })

  test('docs/deploy.md has every setting with its variable', () => {
    const page = readFileSync(join(import.meta.dirname, '../../../docs/deploy.md'), 'utf8')
    for (const [name, [, what]] of Object.entries(SETTINGS))
      expect(page.replaceAll(/ +/g, ' ')).toContain(
        `| \`${name}\` | \`${variableOf(name)}\` | ${what} |`,
      )
  })
})

async function lifecycle(url: string, id: string): Promise<unknown> {
  const response = await fetch(`${url}/threads/${id}`, { headers })
  return ((await response.json()) as { lifecycle?: unknown }).lifecycle
}

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
