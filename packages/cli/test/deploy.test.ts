import { spawn, spawnSync } from 'node:child_process'
import { createHash, randomBytes } from 'node:crypto'
import { mkdirSync, mkdtempSync, readFileSync, rmSync, symlinkSync, writeFileSync } from 'node:fs'
import { createServer, type AddressInfo } from 'node:net'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { validate } from 'dockerfile-utils'
import { describe, expect, onTestFinished, test, type TestContext } from 'vitest'
import { parseAllDocuments } from 'yaml'
import { SETTINGS, variableOf } from '../src/config/config.ts'
import { badAgents, Running, skein, tempFolder } from './kit.ts'

const deploy = join(import.meta.dirname, '..', 'deploy')
const read = (name: string): string => readFileSync(join(deploy, name), 'utf8')

/** Skips the test if a program that it needs is not installed. */
function needs({ skip }: TestContext, program: string, ...args: string[]): void {
  skip(
    spawnSync(program, args, { stdio: 'ignore' }).error !== undefined,
    `${program} is not installed`,
  )
}

const variables: ReadonlySet<string> = new Set(Object.keys(SETTINGS).map(variableOf))

/** Every variable that a file sets is one that the command reads. */
function expectKnownVariables(text: string): void {
  const named = new Set(text.match(/\bSKEIN_[A-Z_]+(?!\w|\*|_?\*)/g))
  named.delete('SKEIN_PUBLIC_HOST') // of compose.yaml itself
  named.delete('SKEIN_RESTATE_') // the beginning of several, in a comment
  for (const name of named) expect(variables).toContain(name)
}

describe('files for deployment', { timeout: 60_000 }, () => {
  test.each([
    'Dockerfile',
    'compose.yaml',
    'skein.service',
    'kubernetes/skein.yaml',
    'proxy/nginx.conf',
    'proxy/Caddyfile',
  ])('%s says first how it was tested, and sets only variables that exist', (name) => {
    expect(read(name).split('\n')[0]).toMatch(/^# (?:Linted|Verified|Run) by the tests/)
    expectKnownVariables(read(name))
  })

  test('the Dockerfile is clean, and not run as root', async () => {
    expect(validate(read('Dockerfile'))).toEqual([])
    expect(validate('FROM node\nCOPPY a b')).not.toEqual([])
    const lines = read('Dockerfile').split('\n')
    expect(lines.filter((line) => line.startsWith('FROM'))).toHaveLength(2)
    expect(lines.findIndex((line) => line.startsWith('USER 10001'))).toBeLessThan(
      lines.findIndex((line) => line.startsWith('ENTRYPOINT')),
    )
    expect(read('Dockerfile')).toContain('HEALTHCHECK')
  })

  test('compose.yaml has what it promises', async () => {
    const compose = yaml(read('compose.yaml'))[0] as any
    const { services } = compose
    expect(Object.keys(services)).toEqual([
      'postgres',
      'restate-1',
      'restate-2',
      'restate-3',
      'worker',
      'proxy',
    ])
    for (const name of ['restate-1', 'restate-2', 'restate-3'])
      expect(services[name].environment.RESTATE_DISABLE_TELEMETRY).toBe('true')
    expect(services.worker).toMatchObject({
      read_only: true,
      cap_drop: ['ALL'],
      deploy: { replicas: 2 },
    })
    expect(compose.networks.inside.internal).toBe(true)
    for (const service of Object.values<any>(services))
      for (const secret of service.secrets ?? []) expect(compose.secrets).toHaveProperty(secret)
    // Nothing but the proxy can be reached from outside.
    expect(Object.keys(services).filter((name) => services[name].ports)).toEqual(['proxy'])
  })

  test('the Kubernetes objects fit one another', async () => {
    const objects = yaml(read('kubernetes/skein.yaml')) as any[]
    expect(objects.map(({ kind }) => kind)).toEqual([
      'Deployment',
      'Service',
      'PodDisruptionBudget',
      'NetworkPolicy',
      'Ingress',
    ])
    const [deployment, service, budget, policy] = objects
    const { spec } = deployment.spec.template
    const [container] = spec.containers
    const env = Object.fromEntries(container.env.map((one: any) => [one.name, one.value]))
    const drain = Number(env.SKEIN_DRAIN_SECONDS) + container.lifecycle.preStop.sleep.seconds
    expect(spec.terminationGracePeriodSeconds).toBeGreaterThan(drain)
    expect(spec.enableServiceLinks).toBe(false)
    expect(container.securityContext).toMatchObject({
      readOnlyRootFilesystem: true,
      allowPrivilegeEscalation: false,
    })
    expect(spec.volumes[0].secret.defaultMode & 0o007).toBe(0)
    for (const probe of ['readinessProbe', 'livenessProbe', 'startupProbe'])
      expect(container[probe].httpGet.httpHeaders).toEqual([{ name: 'Host', value: 'localhost' }])
    const labels = deployment.spec.template.metadata.labels
    for (const selector of [
      service.spec.selector,
      budget.spec.selector.matchLabels,
      policy.spec.podSelector.matchLabels,
    ])
      expect(labels).toMatchObject(selector)
    // Secrets are references: no value stands in the file.
    for (const one of container.env)
      if (/SECRET|KEY$|STORE$/.test(one.name)) expect(one).toHaveProperty('valueFrom.secretKeyRef')
  })

  test('the unit of systemd is understood', (context) => {
    needs(context, 'systemd-analyze', '--version')
    const folder = mkdtempSync(join(tmpdir(), 'skein-unit-'))
    onTestFinished(() => rmSync(folder, { recursive: true, force: true }))
    const unit = join(folder, 'skein.service')
    const text = read('skein.service').replace('/usr/bin/node', process.execPath)
    writeFileSync(unit, text)
    const verify = (): string => {
      const { stderr } = spawnSync('systemd-analyze', ['verify', unit], { encoding: 'utf8' })
      return stderr
        .split('\n')
        .filter((line) => line.includes('skein.service'))
        .join('\n')
    }
    expect(verify()).toBe('')
    writeFileSync(unit, text.replace('RestartSec=', 'RestratSec='))
    expect(verify()).toContain('RestratSec')
    expect(Number(/TimeoutStopSec=(\d+)/.exec(text)![1])).toBeGreaterThan(20)
  })
})

function yaml(text: string): unknown[] {
  return parseAllDocuments(text, { merge: true }).map((document) => {
    expect(document.errors).toEqual([])
    return document.toJS()
  })
}

const apiKey = 'a-key-of-this-test-that-is-long-enough'

/** A server with an agent that begins to speak and then hangs, so that a held back event would never come. */
async function startServer(): Promise<string> {
  const cwd = tempFolder()
  symlinkSync(badAgents, join(cwd, 'definitions'))
  expect((await skein(['keys', 'governance.json'], { cwd })).code).toBe(0)
  const sha256 = createHash('sha256').update(apiKey).digest('hex')
  const config = {
    agents: 'definitions',
    port: 0,
    proxies: 1,
    drainSeconds: 0,
    governanceKeys: 'governance.json',
    secretKey: randomBytes(32).toString('base64'),
    authKeys: [{ sha256, tenant: 'acme', scopes: ['admin'] }],
    httpLimits: { requestsPerMinutePerAddress: 50 },
  }
  writeFileSync(join(cwd, 'skein.config.json'), JSON.stringify(config))
  const running = new Running(['serve', '--scripted'], { cwd, env: { SKEIN_TEST_HANGS: '1' } })
  await running.until('stderr', '"listening"')
  return /"url":"http:\/\/([^"]+)"/.exec(running.stderr)![1]!
}

async function freePort(): Promise<number> {
  const probe = createServer()
  await new Promise<void>((resolve) => probe.listen(0, '127.0.0.1', resolve))
  const { port } = probe.address() as AddressInfo
  await new Promise((resolve) => probe.close(resolve))
  return port
}

/** Starts a proxy and waits until the server answers through it. */
async function startProxy(program: string, args: readonly string[], url: string): Promise<void> {
  const child = spawn(program, args, { stdio: ['ignore', 'ignore', 'pipe'] })
  let said = ''
  child.stderr.setEncoding('utf8').on('data', (text: string) => (said += text))
  onTestFinished(async () => {
    // Not SIGKILL, which would leave the worker processes of nginx behind.
    child.kill('SIGTERM')
    // Caddy waits for connections that are still open.
    const late = setTimeout(() => child.kill('SIGKILL'), 2000)
    if (child.exitCode === null && child.signalCode === null)
      await new Promise((resolve) => child.once('close', resolve))
    clearTimeout(late)
  })
  const isReady = (): Promise<boolean> =>
    fetch(`${url}/readyz`).then(
      ({ ok }) => ok,
      () => false,
    )
  await expect.poll(isReady, { timeout: 15_000, message: said }).toBe(true)
}

/** Events come one by one, bodies are passed on, and the limit counts the address that the proxy has seen. */
async function expectStreams(url: string): Promise<void> {
  const headers = { authorization: `Bearer ${apiKey}`, 'content-type': 'application/json' }
  const body = JSON.stringify({ agent: 'slow', message: 'Hello' })
  const created = await fetch(`${url}/threads`, { method: 'POST', headers, body })
  expect(created.status).toBe(201)
  const { id } = (await created.json()) as { id: string }
  const leave = new AbortController()
  const stream = await fetch(`${url}/threads/${id}/stream`, { headers, signal: leave.signal })
  expect(stream.headers.get('content-type')).toContain('text/event-stream')
  const decoder = new TextDecoder()
  let text = ''
  for await (const chunk of stream.body!) {
    text += decoder.decode(chunk, { stream: true })
    if (text.includes('Thinking')) break
  }
  leave.abort()
  expect(text).toContain('Thinking')
  const file = new Uint8Array(3_000_000).fill(7)
  const put = await fetch(`${url}/threads/${id}/files/big.bin`, {
    method: 'PUT',
    headers,
    body: file,
  })
  expect(put.ok).toBe(true)
  const spread = await Promise.all(
    Array.from({ length: 60 }, (_, index) =>
      fetch(`${url}/healthz`, { headers: { 'x-forwarded-for': `10.0.0.${index}` } }),
    ),
  )
  expect(spread.some(({ status }) => status === 429)).toBe(true)
}

describe('proxies pass events on when they come', { timeout: 90_000 }, () => {
  test('nginx', async (context) => {
    needs(context, 'nginx', '-v')
    const upstream = await startServer()
    const port = await freePort()
    const folder = mkdtempSync(join(tmpdir(), 'skein-nginx-'))
    onTestFinished(() => rmSync(folder, { recursive: true, force: true }))
    const server = read('proxy/nginx.conf')
      .replace('worker:4111', upstream)
      .replace('listen 443 ssl;', `listen 127.0.0.1:${port};`)
      .replace(/^ *(?:ssl_|http2 ).*\n/gm, '')
    for (const name of ['body', 'proxy', 'fastcgi', 'uwsgi', 'scgi']) mkdirSync(join(folder, name))
    const temporary = [
      `client_body_temp_path ${folder}/body;`,
      ...['proxy', 'fastcgi', 'uwsgi', 'scgi'].map(
        (name) => `${name}_temp_path ${folder}/${name};`,
      ),
    ].join('\n')
    const config = join(folder, 'nginx.conf')
    const user = process.getuid?.() === 0 ? 'user root;' : ''
    writeFileSync(
      config,
      `${user} daemon off; pid ${folder}/pid; error_log stderr; worker_processes 1;
      events {} http { access_log off; ${temporary}\n${server} }`,
    )
    const tested = spawnSync('nginx', ['-t', '-p', folder, '-c', config], { encoding: 'utf8' })
    expect(tested.stderr).toContain('test is successful')
    const url = `http://127.0.0.1:${port}`
    await startProxy('nginx', ['-p', folder, '-c', config], url)
    await expectStreams(url)
  })

  test('Caddy', async (context) => {
    needs(context, 'caddy', 'version')
    const upstream = await startServer()
    const port = await freePort()
    const folder = mkdtempSync(join(tmpdir(), 'skein-caddy-'))
    onTestFinished(() => rmSync(folder, { recursive: true, force: true }))
    const site = read('proxy/Caddyfile')
      .replace('worker:4111', upstream)
      .replace('agents.example {', `http://127.0.0.1:${port} {`)
    const config = join(folder, 'Caddyfile')
    writeFileSync(
      config,
      `{\n\tadmin off\n\tauto_https off\n\tstorage file_system ${folder}\n}\n${site}`,
    )
    await startProxy(
      'caddy',
      ['run', '--adapter', 'caddyfile', '--config', config],
      `http://127.0.0.1:${port}`,
    )
    await expectStreams(`http://127.0.0.1:${port}`)
  })
})
