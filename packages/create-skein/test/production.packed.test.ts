import { spawnSync } from 'node:child_process'
import { existsSync, mkdtempSync, readdirSync, readFileSync, writeFileSync } from 'node:fs'
import { rm } from 'node:fs/promises'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import type { Browser, BrowserContext, Page } from 'playwright-core'
import { afterAll, beforeAll, describe, expect, test } from 'vitest'
import { launchBrowser } from '../../../scripts/browser.ts'
import { Running } from '../../cli/test/kit.ts'
import { buildWithoutDocker, hasDocker } from './container.ts'
import { addressOf, startNewUser, type NewUser } from './new-user.ts'

/** From `npm create` to signed-in users of a page, and to an image: as the README of the project says. */
const timeout = 300_000
const home = mkdtempSync(join(tmpdir(), 'skein-production-'))
const cwd = join(home, 'shop')
let newUser: NewUser
let browser: Browser

beforeAll(async () => {
  newUser = await startNewUser(home)
  browser = await launchBrowser()
}, timeout)

afterAll(async () => {
  await browser?.close()
  newUser?.close()
  await rm(home, { recursive: true, force: true })
}, 60_000)

describe('the template chat in production', { timeout }, () => {
  test('from npm create to a signed-in user who chats with Markdown on a phone, behind skein serve', async () => {
    await newUser.done('npm create skein@latest shop -- --template chat', { cwd: home })
    await newUser.done('npm install', { cwd })
    const passwordOfAda = await followReadme()
    const passwordOfBob = await addUser('bob')
    const { page, agents, stop } = await startBoth()

    // No one gets anything without a token, neither here nor there.
    for (const address of [page, agents])
      expect((await fetch(new URL('/agents/assistant/chat/x', address))).status).toBe(401)

    const foreign: string[] = []
    const ada = await openPhone(page, foreign)
    await expectNoBarrier(ada)
    await signIn(ada, 'ada', 'wrong')
    await ada.getByText('Name or password is wrong.').waitFor()
    await signIn(ada, 'ada', passwordOfAda)

    // Markdown is shown as such, and the lines that a person types stay lines.
    await say(ada, 'hello\nthere')
    await ada.locator('.assistant li strong', { hasText: 'note buy milk' }).waitFor()
    expect(await ada.locator('.user .typed').innerText()).toBe('hello\nthere')
    const hostile =
      '![x](https://evil.example/?q=1) <img src=https://evil.example/2> [y](javascript:alert(1))'
    await say(ada, `note ${hostile}`)
    await ada.getByText('[picture: x]').waitFor()
    expect(await ada.locator('img').count()).toBe(0)
    expect(await ada.locator('a[href^="javascript"]').count()).toBe(0)

    // A call waits for the person, and its buttons fit a finger.
    await say(ada, 'note buy milk')
    await ada.getByText('I have written down: buy milk').waitFor()
    await say(ada, 'delete buy milk')
    const approve = ada.getByRole('button', { name: 'Approve' })
    await approve.waitFor()
    await expectInView(ada, approve)
    await expectNoBarrier(ada)
    await approve.tap()
    await ada.getByText('I have deleted: buy milk').waitFor()

    // Stop can be reached while an answer comes, and ends the run on the server.
    await say(ada, `note ${'ab '.repeat(160)}end`)
    await ada.locator('.assistant', { hasText: 'written down: ab ab' }).waitFor()
    const stopButton = ada.getByRole('button', { name: 'Stop' })
    await expectInView(ada, stopButton)
    await stopButton.tap()
    await ada.getByRole('button', { name: 'Send' }).waitFor()
    await ada.reload()
    await ada.getByText('I have deleted: buy milk').waitFor()
    expect(await ada.locator('.assistant .prose').last().innerText()).not.toContain('end')

    // Another user does not see the chat, although he has its address.
    const bob = await openPhone(ada.url(), foreign)
    await signIn(bob, 'bob', passwordOfBob)
    await bob.getByLabel('Message').waitFor()
    expect(await bob.locator('.assistant, .user').count()).toBe(0)

    await ada.getByRole('button', { name: 'Sign out' }).tap()
    await ada.getByLabel('Password').waitFor()
    await ada.reload()
    await ada.getByLabel('Password').waitFor()
    expect(foreign).toEqual([])
    await stop()
  })

  test('the Dockerfile makes an image that serves, is healthy, and has no secret in it', async () => {
    const env = {
      ...readEnv(),
      SKEIN_GOVERNANCE_KEYS: join(cwd, 'secrets', 'governance.json'),
      SKEIN_HOST: '127.0.0.1',
      SKEIN_PORT: '0',
    }
    if (hasDocker) return expectImage(env)
    process.stderr.write(
      'no Docker daemon runs here: the steps of the Dockerfile run without one\n',
    )
    const image = await buildWithoutDocker(cwd, newUser.machine())
    const files = readdirSync(image.workdir)
    expect(files).toEqual(expect.arrayContaining(['agents', 'dist', 'node_modules', 'server']))
    for (const secret of ['.env', '.skein', 'secrets']) expect(files).not.toContain(secret)
    expect(existsSync(join(image.workdir, 'node_modules', 'vite'))).toBe(false) // pruned
    const [program = '', ...args] = [...image.command, '--scripted']
    const running = new Running(args, {
      cwd: image.workdir,
      program,
      env: { ...image.env, ...env },
    })
    await running.until('stderr', '"listening"')
    const port = /"url":"[^"]+:(\d+)"/.exec(running.stderr)![1]!
    expect(existsSync(image.pathOf('/data/skein.db'))).toBe(true)
    const [check = '', ...words] = image.healthCommand
    const health = (at: string): Promise<{ code: number | null }> =>
      new Running(words, {
        cwd: image.workdir,
        program: check,
        env: { ...image.env, SKEIN_PORT: at },
      }).ended
    expect((await health(port)).code).toBe(0)
    running.signal('SIGTERM')
    expect((await running.ended).code).toBe(0)
    expect((await health(port)).code).toBe(1)
  })
})

/** The commands of "In production" in the README, except the two that run for ever. Returns the password of ada. */
async function followReadme(): Promise<string> {
  const readme = readFileSync(join(cwd, 'README.md'), 'utf8')
  const [, block = ''] = /## In production\n\n```sh\n([^]*?)```/.exec(readme)!
  const script = block.replaceAll(/^npm (?:start|run page).*\n/gm, '')
  expect(block.length - script.length).toBeGreaterThan(40)
  const file = join(home, 'production.sh')
  writeFileSync(file, `set -e\n${script}`)
  const { stdout } = await newUser.done(`sh ${file}`, { cwd })
  return passwordIn(stdout)
}

async function addUser(name: string): Promise<string> {
  return passwordIn((await newUser.done(`npm run add-user -- ${name}`, { cwd })).stdout)
}

function passwordIn(output: string): string {
  return /signs in with the password (\S+)/.exec(output)![1]!
}

function readEnv(): Record<string, string> {
  const lines = readFileSync(join(cwd, '.env'), 'utf8').matchAll(/^(\w+)=(.*)$/gm)
  return Object.fromEntries([...lines].map(([, name = '', value = '']) => [name, value]))
}

/** Starts what the README calls `npm start` and `npm run page`, at free ports. */
async function startBoth(): Promise<{ page: string; agents: string; stop: () => Promise<void> }> {
  const serve = newUser.type('npm start -- --scripted', { cwd, env: { SKEIN_PORT: '0' } })
  await serve.until('stderr', '"listening"')
  const agents = /"url":"([^"]+)"/.exec(serve.stderr)![1]!
  const pages = newUser.type('npm run page', { cwd, env: { PORT: '0', AGENTS_URL: agents } })
  const page = await addressOf(pages, 'page')
  return {
    page,
    agents,
    async stop() {
      for (const running of [pages, serve]) running.signal('SIGTERM')
      await pages.ended
      expect((await serve.ended).stderr).toContain('drained: ')
    },
  }
}

/** Opens a page in a browser of a phone; requests to other hosts are added to `foreign`. */
async function openPhone(address: string, foreign: string[]): Promise<Page> {
  const context: BrowserContext = await browser.newContext({
    viewport: { width: 390, height: 664 },
    isMobile: true,
    hasTouch: true,
  })
  const page = await context.newPage()
  page.setDefaultTimeout(20_000)
  page.on('request', (request) => {
    const { host } = new URL(request.url())
    if (host !== '' && host !== new URL(address).host) foreign.push(request.url())
  })
  await page.goto(address)
  return page
}

async function signIn(page: Page, name: string, password: string): Promise<void> {
  await page.getByLabel('Name').fill(name)
  await page.getByLabel('Password').fill(password)
  await page.getByRole('button', { name: 'Sign in' }).tap()
}

async function say(page: Page, text: string): Promise<void> {
  await page.getByLabel('Message').fill(text)
  await page.getByRole('button', { name: 'Send' }).tap()
}

/** The whole of an element is on the screen, and is large enough for a finger. */
async function expectInView(page: Page, element: ReturnType<Page['locator']>): Promise<void> {
  const box = (await element.boundingBox())!
  const { width, height } = page.viewportSize()!
  expect(box.x).toBeGreaterThanOrEqual(0)
  expect(box.y).toBeGreaterThanOrEqual(0)
  expect(box.x + box.width).toBeLessThanOrEqual(width)
  expect(box.y + box.height).toBeLessThanOrEqual(height)
  expect(Math.min(box.width, box.height)).toBeGreaterThanOrEqual(44)
}

/** Nothing is wider than the phone, and axe finds nothing, in light and dark. */
async function expectNoBarrier(page: Page): Promise<void> {
  const { AxeBuilder } = await import('@axe-core/playwright')
  for (const colorScheme of ['light', 'dark'] as const) {
    await page.emulateMedia({ colorScheme })
    const { violations } = await new AxeBuilder({ page }).analyze()
    expect(violations.map(({ id, nodes }) => [id, nodes.map(({ html }) => html)])).toEqual([])
  }
  expect(await page.evaluate('document.documentElement.scrollWidth')).toBeLessThanOrEqual(390)
}

/** Builds and runs the image with Docker. The registry of this test is on loopback, so the build uses its network. */
async function expectImage(env: Readonly<Record<string, string>>): Promise<void> {
  writeFileSync(join(cwd, '.npmrc'), `registry=${newUser.machine()['npm_config_registry']}\n`)
  const docker = (...args: string[]): string => {
    const { status, stdout, stderr } = spawnSync('docker', args, { cwd, encoding: 'utf8' })
    if (status !== 0)
      throw new Error(`docker ${args[0]} ended with ${status}:\n${stdout}\n${stderr}`)
    return stdout.trim()
  }
  const image = `skein-test-${process.pid}`
  docker('build', '--network', 'host', '-t', image, '.')
  const variables = Object.entries({ ...env, SKEIN_GOVERNANCE_KEYS: '/keys/governance.json' })
  const container = docker(
    'run',
    '--detach',
    '--read-only',
    '--tmpfs=/tmp',
    '--tmpfs=/data:uid=10001,gid=10001,mode=0700',
    `--volume=${join(cwd, 'secrets')}:/keys:ro`,
    ...variables.flatMap(([name, value]) => ['--env', `${name}=${value}`]),
    '--env=SKEIN_PORT=4111',
    '--user=0:10001', // reads the key that belongs to root
    image,
    'serve',
    '--scripted',
  )
  try {
    const health = (): string =>
      docker('inspect', '--format', '{{.State.Health.Status}}', container)
    await expect.poll(health, { timeout: 60_000, interval: 1000 }).toBe('healthy')
    expect(docker('exec', container, 'ls', '-a', '/app')).not.toMatch(
      /^(?:\.env|secrets|\.skein)$/m,
    )
    docker('stop', '--time', '30', container)
    expect(docker('logs', container)).toBeDefined()
  } finally {
    docker('rm', '--force', container)
    docker('rmi', '--force', image)
  }
}
