import { chmodSync, existsSync, mkdirSync, readFileSync, rmSync, writeFileSync } from 'node:fs'
import { join } from 'node:path'
import { describe, expect, test } from 'vitest'
import { SETTINGS, variableOf } from '../src/config/config.ts'
import { optionalPackage } from '../src/connect/optional-package.ts'
import { badAgents, Running, skein, tempFolder } from './kit.ts'
import { apiKey, refuses, safeFolder, secretKey } from './safe-server.ts'

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
  const running = new Running(['serve', '--scripted'], {
    cwd,
    env: { SKEIN_SECRET_KEY: secretKey, ...env },
  })
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
    const { models } = logOf(running).find(({ msg }) => msg === 'listening')!
    expect(models).toMatchObject({ support: 'scripted script' })
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

  test('a function in skein.config.ts knows the users of a page; keys are tried before', async () => {
    const cwd = await safeFolder()
    const { authKeys, ...config } = JSON.parse(
      readFileSync(join(cwd, 'skein.config.json'), 'utf8'),
    ) as Record<string, unknown>
    const auth = `async (request) => {
      const user = /^Bearer token-of-(\\w+)$/.exec(request.headers.get('authorization') ?? '')?.[1]
      return user ? { tenant: 'acme', user, scopes: ['threads:read', 'threads:write'] } : null
    }`
    const file = (more: object): string =>
      `export default { ...${JSON.stringify({ ...config, ...more })}, auth: ${auth} }`
    rmSync(join(cwd, 'skein.config.json'))
    writeFileSync(join(cwd, 'skein.config.ts'), file({ authKeys }))
    const { url } = await start(cwd)
    const as = (user: string, init: RequestInit = {}, path = '/threads') =>
      fetch(url + path, {
        ...init,
        headers: { authorization: `Bearer token-of-${user}`, 'content-type': 'application/json' },
      })
    const created = await as('ada', { method: 'POST', body: '{"agent":"support"}' })
    expect(created.status).toBe(201)
    const { id } = (await created.json()) as { id: string }
    expect((await as('ada', {}, `/threads/${id}`)).status).toBe(200)
    expect((await as('bob', {}, `/threads/${id}`)).status).toBe(404)
    expect((await as('!')).status).toBe(401)
    expect((await fetch(`${url}/threads`, { headers })).status).toBe(200)

    // Without keys the function alone is enough, and what is no function is refused.
    const check = (env: Record<string, string> = {}) =>
      skein(['serve', '--check', '--scripted'], {
        cwd,
        env: { SKEIN_SECRET_KEY: secretKey, ...env },
      })
    writeFileSync(join(cwd, 'skein.config.ts'), file({}))
    expect((await check()).stderr).toContain('Safe to start')
    const refused = await check({ SKEIN_AUTH: 'everyone' })
    expect(refused.stderr).toContain('auth: is not a function')
    expect(refused.code).toBe(2)
  })

  test('drains: a run that does not end in time is parked, and continues at the next start', async () => {
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
    expect(again.running.stderr).toContain('ended immediately by a second signal')
  })

  test('refuses all unsafe settings together, with reasons', async () => {
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
      'auth: "none" lets in anyone',
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
    expect(stderr).toContain('`skein dev` shows it at /studio/docs/.')
    expect(existsSync(join(cwd, '.skein', 'skein.db'))).toBe(false)
  })

  test.each([
    [{ SKEIN_HOST: '0.0.0.0' }, 'allowedHosts: is empty'],
    [{ SKEIN_SECRET_KEY: '' }, 'secretKey: is missing'],
  ])('refuses %o', refuses)

  test('--check says that a safe configuration is safe, and opens nothing', async () => {
    const cwd = await safeFolder()
    const env = { SKEIN_SECRET_KEY: secretKey }
    const { code, stderr } = await skein(['serve', '--scripted', '--check'], { cwd, env })
    expect(stderr).toContain('Safe to start')
    expect(code).toBe(0)
    expect(existsSync(join(cwd, '.skein'))).toBe(false)
  })

  test('a scripted model keeps it from starting unless it is asked for; .env is read', async () => {
    const cwd = await safeFolder()
    writeFileSync(join(cwd, '.env'), `SKEIN_SECRET_KEY=${secretKey}\n`)
    const [refused, allowed] = await Promise.all([
      skein(['serve', '--check'], { cwd }),
      skein(['serve', '--check', '--scripted'], { cwd }),
    ])
    expect(refused.code).toBe(2)
    expect(refused.stderr).toContain(
      'agents: agent "support": answers from a script ("script") and asks no vendor.',
    )
    expect(refused.stderr).not.toContain('secretKey')
    expect(allowed.stderr).toMatch(/^agent support: scripted script$/m)
    expect(allowed.stderr).toContain('Safe to start')
    expect(allowed.code).toBe(0)
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
