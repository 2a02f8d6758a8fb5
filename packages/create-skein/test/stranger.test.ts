import { createHash, randomBytes } from 'node:crypto'
import {
  existsSync,
  mkdirSync,
  mkdtempSync,
  readFileSync,
  symlinkSync,
  writeFileSync,
} from 'node:fs'
import { rm } from 'node:fs/promises'
import { homedir, tmpdir } from 'node:os'
import { join } from 'node:path'
import type { Browser, Page } from 'playwright-core'
import { afterAll, beforeAll, describe, expect, test } from 'vitest'
import { installPeers, peersOf } from '../../../scripts/peers.ts'
import { launchBrowser } from '../../../scripts/browser.ts'
import { Running, type Ended } from '../../cli/test/kit.ts'
import { noPostgres, startPostgres } from '../../postgres/test/server.ts'
import { startRegistry, type Registry } from './packed.ts'

/**
 * The way of somebody who has never seen Skein: only npm, in an empty folder outside of the repository, with the
 * packages as they would be published.
 */
const timeout = 300_000
const peers = 'packages/create-skein/test/peers'
const noNodes = await whyNoNodes()
for (const line of [noNodes, noPostgres]) if (line !== undefined) process.stderr.write(`${line}\n`)

async function whyNoNodes(): Promise<string | undefined> {
  const isThere = process.platform === 'linux' && process.arch === 'x64'
  const failure = isThere ? await installPeers(peers) : 'another platform'
  return failure && 'skipped: templates on Node 20 and 22, which npm could not install'
}

let registry: Registry
let browser: Browser
/** Outside of the repository, so that nothing of it is found by accident. */
const home = mkdtempSync(join(tmpdir(), 'skein-stranger-'))

beforeAll(async () => {
  registry = await startRegistry()
  browser = await launchBrowser()
  mkdirSync(join(home, 'cache'))
  // Contents that npm has fetched before are taken from its cache; what `npm create` installs is not.
  const contents = join(process.env['npm_config_cache'] ?? join(homedir(), '.npm'), '_cacache')
  mkdirSync(contents, { recursive: true })
  symlinkSync(contents, join(home, 'cache', '_cacache'))
}, timeout)

afterAll(async () => {
  await browser?.close()
  registry?.close()
  await rm(home, { recursive: true, force: true })
}, 60_000)

/** The environment of a machine that has nothing but npm and this Node. */
function machine(node: string = process.execPath): Record<string, string> {
  const bin = join(home, `bin-${createHash('sha256').update(node).digest('hex').slice(0, 8)}`)
  if (!existsSync(bin)) {
    mkdirSync(bin)
    symlinkSync(node, join(bin, 'node'))
  }
  // The root of the workspace has its own Node in front.
  const path = (process.env['PATH'] ?? '').split(':').filter((one) => !one.includes('node_modules'))
  return {
    PATH: [bin, ...path].join(':'),
    npm_config_registry: registry.url,
    npm_config_cache: join(home, 'cache'),
    npm_config_yes: 'true',
    npm_config_loglevel: 'error',
    npm_config_audit: 'false',
    npm_config_fund: 'false',
    npm_config_update_notifier: 'false',
    NO_PROXY: '127.0.0.1,localhost',
  }
}

interface At {
  readonly cwd: string
  readonly env?: Record<string, string>
}

/** Starts a command line, as a person types it. */
function type(line: string, { cwd, env }: At): Running {
  const [program = '', ...args] = line.split(' ')
  return new Running(args, { cwd, program, env: { ...machine(), ...env } })
}

/** Runs a command line that has to succeed. */
async function done(line: string, at: At): Promise<Ended> {
  const ended = await type(line, at).ended
  if (ended.code !== 0)
    throw new Error(`${line} ended with ${ended.code}:\n${ended.stdout}\n${ended.stderr}`)
  return ended
}

/** The two commands that `npm create skein` prints. */
function nextCommands(output: string): readonly string[] {
  return [...output.matchAll(/^ {2}(\S.*)$/gm)].map(([, line]) => line!)
}

async function say(page: Page, text: string): Promise<void> {
  await page.getByLabel('Message').fill(text)
  await page.getByRole('button', { name: 'Send' }).click()
}

/** The address that a line of the output names, e.g. `page    http://localhost:5173/`. */
async function addressOf(running: Running, name: string): Promise<string> {
  await running.until('stdout', new RegExp(`^${name} .*\\n`, 'm'))
  return new RegExp(`^${name} +(\\S+)`, 'm').exec(running.stdout)![1]!
}

describe('from nothing to production', { timeout }, () => {
  const cwd = join(home, 'my-app')

  test('create prints two commands, and they lead to a project whose test and check pass', async () => {
    const created = await done('npm create skein@latest my-app -- --template chat', { cwd: home })
    expect(nextCommands(created.stdout)).toEqual(['cd my-app && npm install', 'npm run dev'])
    expect(existsSync(join(cwd, '.git')) || existsSync(join(cwd, 'node_modules'))).toBe(false)
    expect(readFileSync(join(cwd, '.gitignore'), 'utf8')).toMatch(/^\.env$/m)
    await done('npm install', { cwd })
    // A key in `.env` is all that a real model needs; tests go on with their scripts.
    const env = readFileSync(join(cwd, '.env'), 'utf8')
    writeFileSync(join(cwd, '.env'), env.replace('# ANTHROPIC_API_KEY=', 'ANTHROPIC_API_KEY=sk-x'))
    expect((await done('npx skein doctor', { cwd })).stdout).toMatch(/models +anthropic claude/)
    writeFileSync(join(cwd, '.env'), env)
    expect((await done('npm test', { cwd })).stdout).toMatch(/pass 2\n.*fail 0/)
    expect((await done('npm run check', { cwd })).stderr).toContain(
      'No problems. Agents: assistant.',
    )
  })

  test('dev: the page streams; an own tool; approvals in the page and in a terminal', async () => {
    const dev = type('npm run dev -- --port 0', { cwd })
    const address = await addressOf(dev, 'page')
    expect(dev.stdout).toContain('scripted model, no key used')
    const page = await browser.newPage()
    page.setDefaultTimeout(20_000)
    const foreign: string[] = []
    page.on('request', (request) => {
      if (!request.url().startsWith(address) && !/^(?:data|blob|ws):/.test(request.url()))
        foreign.push(request.url())
    })
    await page.goto(address)

    // Words appear one after the other.
    await page.evaluate(`seen = new Set(); new MutationObserver(() => {
      seen.add(document.querySelector('.assistant')?.textContent.length)
    }).observe(document.body, { subtree: true, childList: true, characterData: true })`)
    await say(page, 'hello')
    await page.getByText('gives you a real model.').waitFor()
    expect(await page.evaluate('seen.size')).toBeGreaterThan(10)

    // A tool of one's own, exactly as AGENTS.md of the project shows it; `dev` notices it.
    const [, name, code] = /```ts\n\/\/ (tools\/\S+)\n([^]*?)```/.exec(
      readFileSync(join(cwd, 'AGENTS.md'), 'utf8'),
    )!
    writeFileSync(join(cwd, name!), code!)
    const prompt = join(cwd, 'prompts', 'assistant.ts')
    const edited = readFileSync(prompt, 'utf8')
      .replace(
        'export default',
        "import countWords from '../tools/count_words.ts'\n\nexport default",
      )
      .replace('deleteNote]', 'deleteNote, countWords]')
    writeFileSync(prompt, edited)
    await dev.until('stderr', /reloaded: .*prompts\/assistant\.ts/)
    await say(page, 'call count_words {"text":"one two three"}')
    await page.getByText('count_words returned: 3').waitFor()

    await say(page, 'note buy milk')
    await page.getByText('I have written down: buy milk').waitFor()
    await say(page, 'delete buy milk')
    await page.getByRole('button', { name: 'Approve' }).click()
    await page.getByText('I have deleted: buy milk').waitFor()

    await say(page, 'note buy bread')
    await page.getByText('I have written down: buy bread').waitFor()
    await say(page, 'delete buy bread')
    await page.getByRole('button', { name: 'Approve' }).waitFor()
    const inbox = await done('npx skein inbox', { cwd })
    expect(inbox.stdout).toContain('delete_note {"text":"buy bread"}')
    const [thread] = inbox.stdout.split(' ')
    const approved = await done(`npx skein approve ${thread} --follow`, { cwd })
    expect(approved.stdout).toContain('I have deleted: buy bread')
    await page.reload()
    await page.getByText('I have deleted: buy bread').waitFor()
    expect(await page.getByRole('button', { name: 'Approve' }).count()).toBe(0)
    expect(foreign).toEqual([])
    await page.close()

    dev.signal('SIGINT')
    expect((await dev.ended).stderr).toContain('Running threads are parked')
    await done('npm run check', { cwd })
    await done('npm test', { cwd })
  })

  test('build', async () => {
    await done('npm run build', { cwd })
    expect(readFileSync(join(cwd, 'dist', 'index.html'), 'utf8')).toContain('assets/')
  })

  test.skipIf(noPostgres !== undefined)('serve with PostgreSQL, backup, restore', async () => {
    const postgres = await startPostgres()
    try {
      await done('npm install @skein/postgres', { cwd })
      await done('npx skein keys governance.json', { cwd })
      const key = randomBytes(24).toString('hex')
      const sha256 = createHash('sha256').update(key).digest('hex')
      const env = {
        SKEIN_PORT: '0',
        SKEIN_STORE: postgres.url,
        SKEIN_GOVERNANCE_KEYS: join(cwd, 'governance.json'),
        SKEIN_SECRET_KEY: randomBytes(32).toString('base64'),
        SKEIN_AUTH_KEYS: JSON.stringify([{ sha256, tenant: 'acme', scopes: ['admin'] }]),
      }
      const headers = { authorization: `Bearer ${key}`, 'content-type': 'application/json' }
      const serve = async (more: object) => {
        const running = type('npm start', { cwd, env: { ...env, ...more } })
        await running.until('stderr', '"listening"')
        return { running, url: /"url":"([^"]+)"/.exec(running.stderr)![1]! }
      }
      const resultOf = async (url: string, id: string) =>
        (await (await fetch(`${url}/threads/${id}/result`, { headers })).json()) as { text: string }

      const first = await serve({})
      const body = JSON.stringify({ agent: 'assistant', message: 'note buy milk' })
      const created = await fetch(`${first.url}/threads`, { method: 'POST', headers, body })
      const { id } = (await created.json()) as { id: string }
      expect((await resultOf(first.url, id)).text).toBe('I have written down: buy milk')
      const backup = await done('npx skein backup monday.jsonl.gz', { cwd, env })
      expect(backup.stdout).toMatch(/1 threads, .*all verified/)
      first.running.signal('SIGTERM')
      expect((await first.running.ended).stderr).toContain('drained: ')

      const store = 'sqlite:restored/skein.db'
      await done(`npx skein restore monday.jsonl.gz --store ${store}`, { cwd })
      const second = await serve({ SKEIN_STORE: store })
      expect((await resultOf(second.url, id)).text).toBe('I have written down: buy milk')
      second.running.signal('SIGTERM')
      await second.running.ended
    } finally {
      await postgres.stop()
    }
  })

  // These templates use packages that are installed already.
  test('worker: its test and check pass, and the pair agrees', async () => {
    const worker = join(home, 'worker')
    await done('npm create skein@latest worker -- --template worker', { cwd: home })
    symlinkSync(join(cwd, 'node_modules'), join(worker, 'node_modules'))
    expect((await done('npm test', { cwd: worker })).stdout).toMatch(/fail 0/)
    await done('npm run check', { cwd: worker })
    const text = 'Write a slogan for the oak loom.'
    const args = ['skein', 'run', 'slogan', text]
    const ended = await new Running(args, { cwd: worker, program: 'npx', env: machine() }).ended
    expect(ended).toMatchObject({ code: 0, stdout: 'oak loom, made with care\n' })
  })

  test('backoffice: a refund waits for a person, and an answer without evidence is withheld', async () => {
    const office = join(home, 'office')
    await done('npm create skein@latest office -- --template backoffice', { cwd: home })
    symlinkSync(join(cwd, 'node_modules'), join(office, 'node_modules'))
    expect((await done('npm test', { cwd: office })).stdout).toMatch(/fail 0/)
    await done('npm run check', { cwd: office })
    const run = (text: string) =>
      new Running(['skein', 'run', 'refunds', text], {
        cwd: office,
        program: 'npx',
        env: machine(),
      }).ended
    const asked = await run('refund O-7')
    expect(asked.code).toBe(3)
    expect(asked.stderr).toContain('undone by undo_refund {"order":"O-7"}')
    const [, thread] = /skein approve (\S+)/.exec(asked.stderr)!
    const approved = await done(`npx skein approve ${thread} --follow`, { cwd: office })
    expect(approved.stdout).toContain('Done: 25 euros')
    expect((await run('How is O-7?')).stdout).toContain('is refunded')
    expect((await run('hello')).code).toBe(4)
  })
})

describe.skipIf(noNodes !== undefined)('other versions of Node', { timeout }, () => {
  const nodeOf = (version: 20 | 22): Record<string, string> =>
    machine(join(peersOf(peers).folder, 'node_modules', `node-${version}`, 'bin', 'node'))

  test('library works on Node 22', async () => {
    const env = nodeOf(22)
    const cwd = join(home, 'library')
    const created = await done('npm create skein@latest library -- --template library', {
      cwd: home,
      env,
    })
    expect(nextCommands(created.stdout)).toEqual(['cd library && npm install', 'npm start'])
    await done('npm install', { cwd, env })
    const started = await done('npm start', { cwd, env })
    expect(started.stdout).toContain('It has seven words.')
    expect((await done('npm test', { cwd, env })).stdout).toMatch(/pass 2\n.*fail 0/)
    await done('npm run check', { cwd, env })
    await done('npm run build', { cwd, env })
    expect((await done('node dist/main.js', { cwd, env })).stdout).toContain('It has seven words.')
    const other = await type('npm create skein@latest app -- --template chat', { cwd: home, env })
      .ended
    expect(other.code).toBe(1)
    expect(other.stderr).toMatch(
      /^error: The template chat needs Node 24 or newer; this is Node 22\./m,
    )
    expect(existsSync(join(home, 'app'))).toBe(false)
  })

  test('Node 20 gets one sentence', async () => {
    const ended = await type('npm create skein@latest app', { cwd: home, env: nodeOf(20) }).ended
    expect(ended.code).toBe(1)
    const said = ended.stderr.split('\n').filter((line) => line !== '' && !line.startsWith('npm '))
    expect(said).toEqual([
      expect.stringMatching(/^Skein needs Node 24 or newer .*; this is Node 20/),
    ])
    expect(existsSync(join(home, 'app'))).toBe(false)
  })
})
