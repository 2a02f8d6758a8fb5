import { accessSync, constants, existsSync } from 'node:fs'
import { createServer } from 'node:net'
import { vendors } from '@skein/ai/vendors'
import { isAnswering, readServerFile, stateFolder, storeFile } from '../connect/embed.ts'
import { type Command, ExitCode, JSON_OPTION, defineCommand } from '../terminal/command.ts'
import { textTable } from '../terminal/output.ts'
import { DEFAULT_PORT } from './dev.ts'

interface Finding {
  readonly ok: boolean
  readonly text: string
}

/** The checks of `skein doctor`, in the order of its report. */
const CHECKS: Readonly<Record<string, () => Finding | Promise<Finding>>> = {
  node() {
    const { node: version } = process.versions
    return { ok: Number(version.split('.')[0]) >= 24, text: `${version} (24 or newer)` }
  },

  async store() {
    const file = storeFile()
    try {
      accessSync(existsSync(stateFolder()) ? stateFolder() : '.', constants.W_OK)
    } catch {
      return { ok: false, text: `${stateFolder()} cannot be written` }
    }
    if (!existsSync(file)) return { ok: true, text: `${file} (created when needed)` }
    // Opening the store shows whether another process uses it, which is not a problem.
    const { sqliteStore } = await import('@skein/runtime')
    try {
      await sqliteStore({ path: file }).close()
      return { ok: true, text: `${file}, not in use` }
    } catch (error) {
      const { code, message } = error as { readonly code?: unknown; readonly message: string }
      return { ok: code === 'STORE_LOCKED', text: message }
    }
  },

  async server() {
    const found = readServerFile()
    if (!found) return { ok: true, text: 'none runs in this folder' }
    const ok = await isAnswering(found.url)
    const what = ok ? 'owns the store' : 'does not answer'
    return { ok, text: `${found.url} (process ${found.pid}) ${what}` }
  },

  port() {
    const taken = { ok: true, text: `${DEFAULT_PORT} is taken; \`dev\` uses the next free one` }
    const free = { ok: true, text: `${DEFAULT_PORT} is free` }
    return new Promise((resolve) => {
      const probe = createServer()
      probe.once('error', () => resolve(taken))
      probe.listen(DEFAULT_PORT, '127.0.0.1', () => probe.close(() => resolve(free)))
    })
  },

  /** Lists which API keys are set: their names, never their values. */
  keys() {
    const names = vendors.flatMap(({ keyVariables }) => keyVariables)
    const present = names.filter((name) => (process.env[name] ?? '') !== '')
    const text = present.length > 0 ? present.join(', ') : 'none; the examples use a scripted model'
    return { ok: true, text }
  },
}

/** `skein doctor` */
export const doctor: Command = defineCommand({
  operands: [],
  options: JSON_OPTION,
  examples: ['skein doctor', 'skein doctor --json'],
  async run({ values, output }) {
    const findings: (Finding & { readonly name: string })[] = []
    for (const [name, look] of Object.entries(CHECKS)) findings.push({ name, ...(await look()) })
    const rows = findings.map(({ name, ok, text }) => [ok ? 'ok' : 'PROBLEM', name, text])
    if (values.json) output.json({ findings })
    else for (const line of textTable(rows)) output.line(line)
    return findings.every(({ ok }) => ok) ? ExitCode.Done : ExitCode.Failed
  },
})
