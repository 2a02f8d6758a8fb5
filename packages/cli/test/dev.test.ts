import { existsSync, readFileSync, rmSync, statSync, writeFileSync } from 'node:fs'
import { join } from 'node:path'
import { describe, expect, test } from 'vitest'
import { writeEchoAgent } from './echo-agent.ts'
import { skein, startDev, tempFolder } from './kit.ts'

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
        'secrets key kept next to the store; set SKEIN_SECRET_KEY to keep it elsewhere',
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
    const again = await skein(['approve', threadId, interruptId, '--yes'], { cwd })
    expect(again).toMatchObject({ code: 1, stdout: '' })
    expect(again.stderr).toContain('INTERRUPT_NOT_FOUND')

    running.signal('SIGTERM')
    expect((await running.ended).code).toBe(0)
    expect(existsSync(file)).toBe(false)
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

  test('reloads definitions; a broken file keeps the last good ones and shows all problems', async () => {
    const cwd = tempFolder()
    writeEchoAgent(cwd, 'First.')
    const { running } = await startDev(['.'], { cwd })
    const ask = async (): Promise<string> => (await skein(['run', 'echo', 'Hi'], { cwd })).stdout
    expect(await ask()).toBe('First.\n')

    writeEchoAgent(cwd, 'Second.')
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

    for (const name of ['broken.ts', 'other.ts']) rmSync(join(cwd, 'agents', name))
    await running.until(
      'stderr',
      /^reloaded: agents\/broken\.ts \(removed\), agents\/other\.ts \(removed\)$/m,
    )
  })

  test.skipIf(process.platform !== 'linux')(
    '--open opens Studio, or says that it cannot',
    async () => {
      const cwd = tempFolder()
      const opened = join(cwd, 'opened')
      const opener = `#!/bin/sh\nprintf %s "$1" > "${opened}.part" && mv "${opened}.part" "${opened}"\n`
      writeFileSync(join(cwd, 'xdg-open'), opener, { mode: 0o755 })
      const { url } = await startDev(['--open'], { cwd, env: { PATH: `${cwd}:/bin:/usr/bin` } })
      await expect
        .poll(() => existsSync(opened) && readFileSync(opened, 'utf8'))
        .toBe(`${url}/studio/`)

      const other = tempFolder()
      const none = await startDev(['--open'], { cwd: other, env: { PATH: other } })
      await none.running.until('stderr', `Open ${none.url}/studio/ yourself.`)
    },
  )
})
