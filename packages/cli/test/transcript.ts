import { execFile } from 'node:child_process'
import { userInfo } from 'node:os'
import { exampleAgents, ownEnv, skeinBin, startDev } from './kit.ts'

const PORT = '127.0.0.1:4111'

/** How many of the last characters of an id lists show. */
const SHORT = 8

/**
 * Runs every command of a page (fences `console`), in order, and writes what came out beneath it. Ids, whole or
 * shortened, times, the folder and the port are put in a fixed form; ids in later commands are taken back to the real
 * ones.
 */
export class Transcript {
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
    for (const [id, name] of this.#names)
      real = real.replaceAll(name, id).replaceAll(name.slice(-SHORT), id.slice(-SHORT))
    return real
  }

  #normal(output: string): string {
    return output
      .replaceAll(this.#address, PORT)
      .replaceAll(/[\da-f]{8}-[\da-f]{4}-7[\da-f]{3}-[\da-f]{4}-[\da-f]{12}/g, (id) =>
        this.#name(id),
      )
      .replaceAll(/\b[\da-f]{8}\b/g, (short) => this.#shortName(short))
      .replaceAll(this.#cwd, '/home/you/my-app')
      .replaceAll(/"(createdAt|updatedAt|wakeAt)":"[^"]+"/g, '"$1":"2026-11-15T08:06:40.000Z"')
      .replaceAll(/\d+ (?:s|min) ago/g, '1 s ago')
      .replaceAll(/of \d+ crash points were/g, 'of 64 crash points were')
      .replaceAll(/digest [\da-f]{12}/g, 'digest 3fa9c1d2e4f5')
      .replaceAll(/· \d+\.\d s ·/g, '· 0.5 s ·')
      .replaceAll(` by ${userInfo().username}\n`, ' by you\n')
      .replaceAll(` by ${userInfo().username} (`, ' by you (')
      .replaceAll(/(cost (?:unknown|\$[\d.]+)  1 s ago) +/g, '$1  ')
  }

  /** The end of an id that was printed before, in its fixed form. */
  #shortName(short: string): string {
    const id = [...this.#names.keys()].find((one) => one.endsWith(short))
    return id === undefined ? short : this.#names.get(id)!.slice(-SHORT)
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
