import {
  appendFileSync,
  existsSync,
  mkdirSync,
  readFileSync,
  renameSync,
  rmSync,
  statSync,
  writeFileSync,
} from 'node:fs'
import { createServer, type AddressInfo } from 'node:net'
import { join } from 'node:path'
import { describe, expect, onTestFinished, test } from 'vitest'
import { badAgents, Running, skein, startDev, tempFolder } from './kit.ts'

/** A machine with other work takes its time to start processes. */
const timeout = 60_000

describe('dev', { timeout }, () => {
  test('prints five lines; others find it; a second one is refused and told where it is', async () => {
    const cwd = tempFolder()
    const { running, url } = await startDev([], { cwd })
    await expect
      .poll(() => running.stdout.trimEnd().split('\n'))
      .toEqual([
        `address ${url}`,
        `studio  ${url}/studio/`,
        'agents  asset_subagent, refunds, support (scripted model, no key used)',
        'store   .skein/skein.db',
        'secrets key kept beside the store; set SKEIN_SECRET_KEY to keep it elsewhere',
      ])
    const file = join(cwd, '.skein', 'server.json')
    expect(JSON.parse(readFileSync(file, 'utf8'))).toEqual({ url, pid: running.child.pid })
    expect(statSync(file).mode & 0o777).toBe(0o600)

    const second = await skein(['dev', '--port', '0'], { cwd })
    expect(second).toMatchObject({ code: 1, stdout: '' })
    expect(second.stderr).toContain('STORE_LOCKED')
    expect(second.stderr).toContain(`is in use by process ${running.child.pid}`)
    expect(second.stderr).toContain(url)

    const asked = await skein(['run', 'support', 'Refund O-9, please', '--json'], { cwd })
    expect(asked.code).toBe(3)
    const { threadId, interruptId } = JSON.parse(asked.stdout).waiting[0]
    const inbox = await skein(['inbox'], { cwd })
    expect(inbox.stdout).toContain(`${threadId} ${interruptId}\n`)
    const denied = await skein(['deny', threadId, '--reason', 'Too late', '--follow'], { cwd })
    expect(denied).toMatchObject({ code: 0 })
    expect(denied.stdout).toMatch(/^It was not refunded\..*Too late.*\n$/)
    const again = await skein(['approve', threadId, interruptId], { cwd })
    expect(again).toMatchObject({ code: 1, stdout: '' })
    expect(again.stderr).toContain('INTERRUPT_NOT_FOUND')

    running.signal('SIGTERM')
    expect((await running.ended).code).toBe(0)
    expect(existsSync(file)).toBe(false)
  })

  test('logs requests and failures to standard error, for people or as JSON lines, or not', async () => {
    const canary = 'canary-51f3'
    const ask = async (url: string): Promise<void> => {
      const headers = { 'content-type': 'application/json' }
      const body = JSON.stringify({ agent: 'failing', message: canary })
      await fetch(`${url}/threads`, { method: 'POST', headers, body })
      await fetch(`${url}/nowhere?key=${canary}`)
    }
    const people = await startDev([badAgents], { cwd: tempFolder() })
    await ask(people.url)
    await people.running.until(
      'stderr',
      /^\d\d:\d\d:\d\d request .*method=POST path=\/threads .*$/m,
    )
    await people.running.until(
      'stderr',
      /^\d\d:\d\d:\d\d warn: request .*path=\/nowhere status=404/m,
    )
    await people.running.until(
      'stderr',
      /warn: session failed threadId=\S+ tenant=default agent=failing/,
    )
    expect(people.running.stderr).not.toContain(canary)

    const lines = await startDev([badAgents, '--log', 'warn'], { cwd: tempFolder() })
    await ask(lines.url)
    await lines.running.until('stderr', 'warn: session failed')
    expect(lines.running.stderr).not.toContain('method=POST')

    const json = new Running(['dev', '--port', '0', '--json', badAgents], { cwd: tempFolder() })
    await json.until('stdout', /"url":"[^"]+"/)
    await ask((JSON.parse(json.stdout) as { url: string }).url)
    await json.until('stderr', '"session failed"')
    const parsed = json.stderr
      .trimEnd()
      .split('\n')
      .map((line) => JSON.parse(line) as object)
    expect(parsed).toContainEqual(
      expect.objectContaining({ level: 30, msg: 'request', method: 'POST', path: '/threads' }),
    )
    expect(json.stderr).not.toContain(canary)

    const wrong = await skein(['dev', '--log', 'loud'], { cwd: tempFolder() })
    expect(wrong).toMatchObject({ code: 2, stdout: '' })
    expect(wrong.stderr).toContain('--log takes one of')
  })

  test('settings in .env count, also those that the configuration file reads', async () => {
    const cwd = tempFolder()
    writeFileSync(join(cwd, '.env'), 'SKEIN_PORT=70000\nMY_AGENTS=elsewhere\n')
    const refused = await skein(['dev'], { cwd })
    expect(refused.stderr).toContain('--port takes a number from 0 to 65535')
    const config = 'export default { agents: process.env.MY_AGENTS }'
    writeFileSync(join(cwd, 'skein.config.mjs'), config)
    const missing = await skein(['dev', '--port', '0'], { cwd })
    expect(missing.stderr).toContain(`There is no folder ${join(cwd, 'elsewhere')}.`)
  })

  test('takes the next port when one is taken, and says so', async () => {
    const taken = createServer()
    await new Promise<void>((resolve) => taken.listen(0, '127.0.0.1', resolve))
    onTestFinished(() => void taken.close())
    const { port } = taken.address() as AddressInfo
    const running = new Running(['dev', '--port', String(port)], { cwd: tempFolder() })
    await running.until('stdout', /^store .*\n/m)
    const own = Number(/:(\d+)\n/.exec(running.stdout)![1])
    expect(own).toBeGreaterThan(port)
    await running.until('stderr', `Port ${port} is taken; listening on ${own} instead.`)
  })

  test('reloads definitions; a broken file keeps the last good ones and shows all problems', async () => {
    const cwd = tempFolder()
    writeAgent(cwd, 'First.')
    const { running } = await startDev(['.'], { cwd })
    const ask = async (): Promise<string> => (await skein(['run', 'echo', 'Hi'], { cwd })).stdout
    expect(await ask()).toBe('First.\n')

    writeAgent(cwd, 'Second.')
    await running.until('stderr', 'reloaded: agents/echo.ts\n')
    expect(await ask()).toBe('Second.\n')

    writeFileSync(join(cwd, 'agents', 'broken.ts'), 'export default {')
    await running.until('stderr', /not reloaded: .*\n.*agents\/broken\.ts.*cannot be imported/)
    writeFileSync(join(cwd, 'agents', 'other.ts'), `export default { name: 'other', sideA: {} }`)
    await running.until(
      'stderr',
      /agents\/broken\.ts[^]*agents\/other\.ts: agent "other": sideA\.prompt/,
    )
    expect(await ask()).toBe('Second.\n')
  })

  test('reloads however a file is saved, and only for files that definitions are made of', async () => {
    const cwd = tempFolder()
    writeAgent(cwd, 'First.')
    const { running } = await startDev(['.'], { cwd })
    const ask = async (): Promise<string> => (await skein(['run', 'echo', 'Hi'], { cwd })).stdout
    const file = join(cwd, 'agents', 'echo.ts')
    const saved = async (save: () => void): Promise<void> => {
      const before = running.stderr.length
      save()
      await running.until('stderr', new RegExp(`^[^]{${before}}[^]*reloaded: agents/echo.ts\\n`))
    }
    // What vim, sed -i, safe write and git do, several times in a row: each one once made the watcher deaf.
    const text = (answer: string): string =>
      readFileSync(file, 'utf8').replace(/says\(".*"\)/, `says(${JSON.stringify(answer)})`)
    await saved(() => {
      writeFileSync(join(cwd, 'agents', 'sedM0sV9H'), text('Renamed.'))
      renameSync(join(cwd, 'agents', 'sedM0sV9H'), file)
    })
    await saved(() => appendFileSync(file, '// appended\n'))
    expect(await ask()).toBe('Renamed.\n')
    await saved(() => {
      writeFileSync(join(cwd, 'agents', '4913'), '')
      rmSync(join(cwd, 'agents', '4913'))
      const content = text('Backed up.')
      renameSync(file, `${file}~`)
      writeFileSync(file, content)
      rmSync(`${file}~`)
    })
    await saved(() => {
      const content = text('Checked out.')
      rmSync(file)
      writeFileSync(file, content)
    })
    await saved(() => appendFileSync(file, '// again\n'))
    expect(await ask()).toBe('Checked out.\n')

    // A module that a definition imports is a part of it; the tools of a page beside it are not.
    mkdirSync(join(cwd, 'web'))
    writeFileSync(join(cwd, 'web', 'vite.config.ts'), 'export default {}\n')
    writeFileSync(join(cwd, 'tsconfig.json'), '{}\n')
    writeFileSync(join(cwd, 'agents', 'README.md'), '# Agents\n')
    writeFileSync(file, `import '../lib/words.ts'\n${readFileSync(file, 'utf8')}`)
    await running.until('stderr', /not reloaded: [^]*lib\/words\.ts/)
    mkdirSync(join(cwd, 'lib'))
    writeFileSync(join(cwd, 'lib', 'words.ts'), 'export const words = 1\n')
    await running.until('stderr', /^reloaded: lib\/words\.ts\n/m)
    for (const name of ['sed', '4913', 'echo.ts~', 'vite', 'tsconfig', 'README'])
      expect(running.stderr).not.toContain(name)
  })

  test('a run that a SIGTERM parks goes on at the next start', async () => {
    const cwd = tempFolder()
    const first = await startDev([badAgents], { cwd, env: { SKEIN_TEST_HANGS: '1' } })
    const created = await post(`${first.url}/threads`, { agent: 'slow', message: 'Go' })
    const tail = new Running(['thread', 'tail', created.id, '--jsonl'], { cwd })
    await tail.until('stdout', '"text_delta"')
    first.running.signal('SIGTERM')
    expect((await first.running.ended).code).toBe(0)

    await startDev([badAgents], { cwd })
    const shown = new Running(['thread', 'tail', created.id, '--until-parked', '--jsonl'], { cwd })
    const { code, stdout } = await shown.ended
    expect(code).toBe(0)
    expect(stdout).toContain('"session_end"')
    const { messages } = JSON.parse(
      (await skein(['thread', 'show', created.id, '--json'], { cwd })).stdout,
    )
    expect(messages.at(-1).message.content).toEqual([{ type: 'text', text: 'Finished.' }])
  })

  test('a store in use by a process that serves nobody is an error that says so', async () => {
    const cwd = tempFolder()
    const { running } = await startDev([], { cwd })
    rmSync(join(cwd, '.skein', 'server.json'))
    const refused = await skein(['run', 'support', 'Hi'], { cwd })
    expect(refused).toMatchObject({ code: 1, stdout: '' })
    expect(refused.stderr).toContain(`is in use by process ${running.child.pid}`)
    const { stdout } = await skein(['doctor'], { cwd })
    expect(stdout).toMatch(new RegExp(`^ok +store .* in use by process ${running.child.pid}`, 'm'))
  })
})

function writeAgent(folder: string, answer: string): void {
  mkdirSync(join(folder, 'agents'), { recursive: true })
  writeFileSync(
    join(folder, 'agents', 'echo.ts'),
    `import { defineAgent, definePrompt } from '@skein/runtime'
import { says, scripted } from '@skein/ai/testing'

const prompt = definePrompt({
  name: 'echo',
  prompt: 'Answer.',
  model: scripted(() => says(${JSON.stringify(answer)})),
})

export default defineAgent({ name: 'echo', sideA: { prompt } })
`,
  )
}

async function post(url: string, body: object): Promise<{ readonly id: string }> {
  const response = await fetch(url, {
    method: 'POST',
    headers: { 'content-type': 'application/json' },
    body: JSON.stringify(body),
  })
  expect(response.status).toBe(201)
  return (await response.json()) as { id: string }
}
