import { appendFileSync, mkdirSync, readFileSync, renameSync, rmSync, writeFileSync } from 'node:fs'
import { createServer, type AddressInfo } from 'node:net'
import { join } from 'node:path'
import { describe, expect, onTestFinished, test } from 'vitest'
import { writeEchoAgent } from './echo-agent.ts'
import { badAgents, Running, skein, startDev, tempFolder } from './kit.ts'

/** A machine with other work takes its time to start processes. */
const timeout = 60_000

describe('dev', { timeout }, () => {
  test('logs requests and failures to standard error, for people or as JSON lines, or not', async () => {
    const canary = 'canary-51f3'
    const ask = async (url: string): Promise<void> => {
      const headers = { 'content-type': 'application/json' }
      const body = JSON.stringify({ agent: 'failing', message: canary })
      await fetch(`${url}/threads`, { method: 'POST', headers, body })
      await fetch(`${url}/nowhere?key=${canary}`)
    }
    const people = await startDev([badAgents, '--log', 'debug'], { cwd: tempFolder() })
    await ask(people.url)
    await people.running.until(
      'stderr',
      /^\d\d:\d\d:\d\d debug: request .*method=POST path=\/threads .*$/m,
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

    // Requests that succeed are not shown otherwise: the lines of one's own code matter more.
    const lines = await startDev([badAgents], { cwd: tempFolder() })
    await ask(lines.url)
    await lines.running.until('stderr', 'warn: session failed')
    expect(lines.running.stderr).not.toContain('method=POST')

    const json = new Running(['dev', '--port', '0', '--json', '--log', 'debug', badAgents], {
      cwd: tempFolder(),
    })
    await json.until('stdout', /"url":"[^"]+"/)
    await ask((JSON.parse(json.stdout) as { url: string }).url)
    await json.until('stderr', '"session failed"')
    const parsed = json.stderr
      .trimEnd()
      .split('\n')
      .map((line) => JSON.parse(line) as object)
    expect(parsed).toContainEqual(
      expect.objectContaining({ level: 20, msg: 'request', method: 'POST', path: '/threads' }),
    )
    expect(json.stderr).not.toContain(canary)

    const wrong = await skein(['dev', '--log', 'loud'], { cwd: tempFolder() })
    expect(wrong).toMatchObject({ code: 2, stdout: '' })
    expect(wrong.stderr).toContain('--log takes one of')
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

  test('reloads however a file is saved, and only for files that definitions are made of', async () => {
    const cwd = tempFolder()
    writeEchoAgent(cwd, 'First.')
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

    // A module that a definition imports is a part of it; the tools of a page next to it are not.
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

  test('a run that a SIGTERM parks continues at the next start', async () => {
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

  test('a store in use by a process that serves no one is an error that says so', async () => {
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

async function post(url: string, body: object): Promise<{ readonly id: string }> {
  const response = await fetch(url, {
    method: 'POST',
    headers: { 'content-type': 'application/json' },
    body: JSON.stringify(body),
  })
  expect(response.status).toBe(201)
  return (await response.json()) as { id: string }
}
