import { accessSync, constants, existsSync } from 'node:fs'
import { createServer } from 'node:net'
import { vendors } from '@skein/ai/vendors'
import { defineCommand, JSON_OPTION, type Command } from '../command.ts'
import { stateFolder, storeFile } from '../connect/places.ts'
import { answers, readServerFile } from '../connect/server-file.ts'
import { DEFAULT_PORT } from '../dev/listen.ts'
import { ExitCode } from '../exit-code.ts'
import { textTable } from '../text-table.ts'

interface Finding {
  readonly name: string
  readonly ok: boolean
  readonly text: string
}

const doctor: Command = defineCommand({
  operands: [],
  options: JSON_OPTION,
  examples: ['skein doctor', 'skein doctor --json'],
  async run({ values, output }) {
    const findings = [node(), await store(), await server(), await port(), keys()]
    if (values.json) output.json({ findings })
    else
      for (const line of textTable(
        findings.map(({ name, ok, text }) => [ok ? 'ok' : 'PROBLEM', name, text]),
      ))
        output.line(line)
    return findings.every(({ ok }) => ok) ? ExitCode.Done : ExitCode.Failed
  },
})

export default doctor

function node(): Finding {
  const { node: version } = process.versions
  return { name: 'node', ok: Number(version.split('.')[0]) >= 24, text: `${version} (24 or newer)` }
}

async function store(): Promise<Finding> {
  const file = storeFile()
  try {
    const place = existsSync(stateFolder()) ? stateFolder() : '.'
    accessSync(place, constants.W_OK)
  } catch {
    return { name: 'store', ok: false, text: `${stateFolder()} cannot be written` }
  }
  if (!existsSync(file)) return { name: 'store', ok: true, text: `${file} (made when needed)` }
  return lockOf(file)
}

/** Whether somebody owns the store: asked by trying to. */
async function lockOf(file: string): Promise<Finding> {
  const { sqliteStore } = await import('@skein/runtime')
  try {
    await sqliteStore({ path: file }).close()
    return { name: 'store', ok: true, text: `${file}, not in use` }
  } catch (error) {
    const { code, message } = error as { readonly code?: unknown; readonly message: string }
    return { name: 'store', ok: code === 'STORE_LOCKED', text: message }
  }
}

async function server(): Promise<Finding> {
  const found = readServerFile()
  if (!found) return { name: 'server', ok: true, text: 'none runs in this folder' }
  const ok = await answers(found.url)
  const what = ok ? 'owns the store' : 'does not answer'
  return { name: 'server', ok, text: `${found.url} (process ${found.pid}) ${what}` }
}

function port(): Promise<Finding> {
  return new Promise((resolve) => {
    const probe = createServer()
    probe.once('error', () =>
      resolve({ name: 'port', ok: true, text: `${DEFAULT_PORT} is taken; \`dev\` takes the next` }),
    )
    probe.listen(DEFAULT_PORT, '127.0.0.1', () =>
      probe.close(() => resolve({ name: 'port', ok: true, text: `${DEFAULT_PORT} is free` })),
    )
  })
}

/** Which keys of vendors the environment holds: their names only, never a value. */
function keys(): Finding {
  const names = vendors.flatMap(({ keyVariables }) => keyVariables)
  const present = names.filter((name) => (process.env[name] ?? '') !== '')
  const text = present.length > 0 ? present.join(', ') : 'none; the examples use a scripted model'
  return { name: 'keys', ok: true, text }
}
