import { spawnSync } from 'node:child_process'
import { createHash, randomBytes } from 'node:crypto'
import { existsSync, mkdtempSync, readFileSync, symlinkSync, writeFileSync } from 'node:fs'
import { rm } from 'node:fs/promises'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import type { Browser, Page } from 'playwright-core'
import { afterAll, beforeAll, describe, expect, test } from 'vitest'
import { peersOf } from '../../../scripts/peers.ts'
import { launchBrowser } from '../../../scripts/browser.ts'
import { Running } from '../../cli/test/kit.ts'
import { noPostgres, startPostgres } from '../../postgres/test/server.ts'
import { addressOf, nextCommands, startNewUser, type NewUser } from './new-user.ts'

/**
 * The way of someone who has never seen Skein: only npm, in an empty folder outside of the repository, with the
 * packages as they would be published.
 */
const timeout = 300_000
const peers = 'runtimes'
const noNode22 = existsSync(nodeOfPeers(22))
  ? undefined
  : 'skipped: the template library on Node 22, which `scripts/runtimes.ts` installs'
const noNode20 = nodeOfPath()
  ? undefined
  : 'skipped: the sentence of Node 20; the Node that runs npm here is another one'
for (const line of [noNode22, noNode20, noPostgres])
  if (line !== undefined) process.stderr.write(`${line}\n`)

function nodeOfPeers(version: 22): string {
  return join(peersOf(peers).folder, 'node_modules', `node-${version}`, 'bin', 'node')
}

/** The Node that runs npm on this machine, if it is Node 20. */
function nodeOfPath(): string | undefined {
  const folders = (process.env['PATH'] ?? '')
    .split(':')
    .filter((one) => !one.includes('node_modules'))
  const node = folders.map((folder) => join(folder, 'node')).find((file) => existsSync(file))
  if (node === undefined) return undefined
  const { stdout } = spawnSync(node, ['--version'], { encoding: 'utf8' })
  return stdout.startsWith('v20.') ? node : undefined
}

let newUser: NewUser
let browser: Browser
const home = mkdtempSync(join(tmpdir(), 'skein-newUser-'))

beforeAll(async () => {
  newUser = await startNewUser(home)
  browser = await launchBrowser()
}, timeout)

afterAll(async () => {
  await browser?.close()
  newUser?.close()
  await rm(home, { recursive: true, force: true })
}, 60_000)

const machine: NewUser['machine'] = (node) => newUser.machine(node)
const type: NewUser['type'] = (line, at) => newUser.type(line, at)
const done: NewUser['done'] = (line, at) => newUser.done(line, at)

async function say(page: Page, text: string): Promise<void> {
  await page.getByLabel('Message').fill(text)
  await page.getByRole('button', { name: 'Send' }).click()
}

describe('from nothing to production', { timeout }, () => {
  const cwd = join(home, 'my-app')

  test('create prints two commands, and they lead to a project whose test and check pass', async () => {
    const created = await done('npm create skein@latest my-app -- --template chat', { cwd: home })
    expect(nextCommands(created.stdout)).toEqual(['cd my-app && npm install', 'npm run dev'])
    expect(existsSync(join(cwd, '.git')) || existsSync(join(cwd, 'node_modules'))).toBe(false)
    expect(readFileSync(join(cwd, '.gitignore'), 'utf8')).toMatch(/^\.env$/m)
    await done('npm install', { cwd })
    // A key in `.env` is all that a real model needs; tests continue with their scripts.
    const env = readFileSync(join(cwd, '.env'), 'utf8')
    writeFileSync(join(cwd, '.env'), env.replace('# ANTHROPIC_API_KEY=', 'ANTHROPIC_API_KEY=sk-x'))
    expect((await done('npx skein doctor', { cwd })).stdout).toMatch(/models +anthropic claude/)
    writeFileSync(join(cwd, '.env'), env)
    expect((await done('npm test', { cwd })).stdout).toMatch(/pass 6\n.*fail 0/)
    expect((await done('npm run check', { cwd })).stderr).toContain(
      'No problems. Agents: assistant.',
    )
  })

  test('the demo plays as it is published', async () => {
    const { stdout } = await done('npx skein demo', { cwd })
    expect(stdout).toContain('11 of 11 promises kept.')
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
    const approved = await done(`npx skein approve ${thread} --yes --follow`, { cwd })
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
        const running = type('npm start -- --scripted', { cwd, env: { ...env, ...more } })
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
    const approved = await done(`npx skein approve ${thread} --yes --follow`, { cwd: office })
    expect(approved.stdout).toContain('Done: 25 euros')
    expect((await run('How is O-7?')).stdout).toContain('is refunded')
    expect((await run('hello')).code).toBe(4)
  })
})

describe('other versions of Node', { timeout }, () => {
  test.skipIf(noNode22 !== undefined)('library works on Node 22', async () => {
    const env = machine(nodeOfPeers(22))
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

  test.skipIf(noNode20 !== undefined)('Node 20 gets one sentence', async () => {
    const env = machine(nodeOfPath())
    const ended = await type('npm create skein@latest app', { cwd: home, env }).ended
    expect(ended.code).toBe(1)
    const said = ended.stderr.split('\n').filter((line) => line !== '' && !line.startsWith('npm '))
    expect(said).toEqual([
      expect.stringMatching(/^Skein needs Node 24 or newer .*; this is Node 20/),
    ])
    expect(existsSync(join(home, 'app'))).toBe(false)
  })
})
