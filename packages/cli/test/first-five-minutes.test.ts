import { execFile } from 'node:child_process'
import { readFileSync, writeFileSync } from 'node:fs'
import { userInfo } from 'node:os'
import { join } from 'node:path'
import { expect, test } from 'vitest'
import { exampleAgents, ownEnv, skein, skeinBin, startDev, tempFolder } from './kit.ts'

/**
 * Runs every command of the page, in order, and writes what came out beneath it. Ids, times and the port
 * are put in a fixed form; ids that stand in later commands are taken back to the real ones.
 * `SKEIN_WRITE_DOCS=1 npx vitest run first-five-minutes` writes the page anew.
 */
const page = join(import.meta.dirname, '..', '..', '..', 'docs', 'first-five-minutes.md')

test('the page says what happens', { timeout: 60_000 }, async () => {
  const before = readFileSync(page, 'utf8')
  const after = await new Transcript(tempFolder()).fill(before)
  if (process.env['SKEIN_WRITE_DOCS'] === undefined) expect(after).toBe(before)
  else writeFileSync(page, after)
  expect(after.match(/^\$ /gm)).toHaveLength(9)
})

test('a refund is still there after a restart', { timeout: 60_000 }, async () => {
  const cwd = tempFolder()
  const ask = (text: string) => skein(['run', 'support', text], { cwd })
  const { running } = await startDev([exampleAgents], { cwd })
  expect((await ask('Where is order O-8?')).stdout).toContain('on its way')
  const asked = await ask('Please refund order O-8.')
  expect(asked.code).toBe(3)
  const [, thread] = /skein approve (\S+)/.exec(asked.stderr)!
  expect((await skein(['approve', thread!, '--follow'], { cwd })).stdout).toContain(
    'Done: 12 euros',
  )
  running.signal('SIGTERM')
  expect((await running.ended).code).toBe(0)

  await startDev([exampleAgents], { cwd })
  expect((await ask('Where is order O-8?')).stdout).toContain('is refunded')
  const again = await ask('Please refund order O-8.')
  const [, second] = /skein approve (\S+)/.exec(again.stderr)!
  const { stdout } = await skein(['approve', second!, '--follow'], { cwd })
  expect(stdout).toContain('Order O-8 is refunded already.')
})

const PORT = '127.0.0.1:4111'

class Transcript {
  readonly #cwd: string
  /** What the page writes for an id, by the id. */
  readonly #names = new Map<string, string>()
  #address = PORT

  constructor(cwd: string) {
    this.#cwd = cwd
  }

  async fill(text: string): Promise<string> {
    const parts = text.split(/(^```console\n[^]*?^```$)/m)
    for (const [index, part] of parts.entries())
      if (part.startsWith('```console')) parts[index] = await this.#block(part)
    return parts.join('')
  }

  async #block(block: string): Promise<string> {
    const lines = ['```console']
    for (const [, command] of block.matchAll(/^\$ (.*)$/gm))
      lines.push(`$ ${command}`, this.#normal(await this.#run(this.#real(command!))).trimEnd())
    return [...lines, '```'].join('\n')
  }

  async #run(command: string): Promise<string> {
    if (command !== 'npm start') return shell(command, this.#cwd)
    // What `npm start` does, on a port of its own.
    const { running, url } = await startDev([exampleAgents], { cwd: this.#cwd })
    this.#address = new URL(url).host
    return running.stdout
  }

  /** A command of the page with the ids and the address of this run. */
  #real(command: string): string {
    let real = command.replaceAll(PORT, this.#address)
    for (const [id, name] of this.#names) real = real.replaceAll(name, id)
    return real
  }

  #normal(output: string): string {
    return output
      .replaceAll(this.#address, PORT)
      .replaceAll(/[\da-f]{8}-[\da-f]{4}-7[\da-f]{3}-[\da-f]{4}-[\da-f]{12}/g, (id) =>
        this.#name(id),
      )
      .replaceAll(/"(createdAt|updatedAt|wakeAt)":"[^"]+"/g, '"$1":"2026-11-15T08:06:40.000Z"')
      .replaceAll(/\d+ (?:s|min) ago/g, '1 s ago')
      .replaceAll(/· \d+\.\d s ·/g, '· 0.5 s ·')
      .replaceAll(` by ${userInfo().username}\n`, ' by you\n')
      .replaceAll(` by ${userInfo().username} (`, ' by you (')
      .replaceAll(/(cost unknown  1 s ago) +/g, '$1  ')
  }

  #name(id: string): string {
    const next = `01928000-0000-7000-8000-${String(this.#names.size + 1).padStart(12, '0')}`
    const name = this.#names.get(id) ?? next
    this.#names.set(id, name)
    return name
  }
}

/** Both streams as a terminal shows them. `npx skein` is the command of this clone. */
function shell(command: string, cwd: string): Promise<string> {
  const own = command.replaceAll('npx skein', `"${process.execPath}" "${skeinBin}"`)
  return new Promise((resolve) => {
    execFile(
      'sh',
      ['-c', `{ ${own} ; } 2>&1`],
      { cwd, env: ownEnv(), timeout: 60_000 },
      (_, output) => resolve(output),
    )
  })
}
