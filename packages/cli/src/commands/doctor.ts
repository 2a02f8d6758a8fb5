import { accessSync, constants, existsSync, statfsSync } from 'node:fs'
import { createServer } from 'node:net'
import { dirname } from 'node:path'
import { vendors } from '@skein/ai/vendors'
import { loadConfig, type SkeinConfig } from '../config/config.ts'
import { shownAddress, storeAddress, type StoreAddress } from '../config/refusals.ts'
import { openPostgres } from '../connect/stores.ts'
import { isAnswering, readServerFile } from '../connect/server-file.ts'
import { loadDefinitions } from '../connect/definitions.ts'
import { missingKeys, modelsOf } from '../connect/agent-models.ts'
import { storeFile } from '../config/project-folder.ts'
import { type Command, defineCommand, ExitCode, JSON_OPTION } from '../terminal/command.ts'
import { errorText, problemLine } from '../terminal/format.ts'
import { textTable } from '../terminal/table.ts'
import { DEFAULT_PORT } from './dev.ts'

/** The result of one check. Its text may name a secret but never contains its value. */
interface Finding {
  readonly ok: boolean
  readonly text: string
}

type Look = (config: SkeinConfig) => Finding | undefined | Promise<Finding | undefined>

/** If less disk space is free, the check warns: the store will soon be unable to write. */
const LITTLE_BYTES = 256 * 1024 * 1024
/** If the clocks of two machines differ by more, the check warns: waiting threads continue late or early. */
const SKEW_MS = 2000

/** The checks of `skein doctor`, in the order of its report. A check that does not apply returns undefined. */
const CHECKS: Readonly<Record<string, Look>> = {
  node() {
    const { node: version } = process.versions
    return { ok: Number(version.split('.')[0]) >= 24, text: `${version} (24 or newer)` }
  },

  /** Checks that all packages have the same version: they are released together. */
  async packages() {
    const versions = new Map<string, string>()
    for (const name of [
      'skein',
      '@skein/runtime',
      '@skein/ai',
      '@skein/postgres',
      '@skein/restate',
    ]) {
      const manifest = await import(`${name}/package.json`, { with: { type: 'json' } }).then(
        (read: { default: { version: string } }) => read.default.version,
        () => undefined, // the last two are installed only where they are used
      )
      if (manifest !== undefined) versions.set(name, manifest)
    }
    const ok = new Set(versions.values()).size <= 1
    const text = [...versions].map(([name, version]) => `${name} ${version}`).join(', ')
    return { ok, text: ok ? text : `${text}: the versions differ` }
  },

  store: ({ store }) => {
    const address = storeAddress(store ?? `sqlite:${storeFile()}`)
    if (!address)
      return { ok: false, text: 'the setting is neither sqlite:<file> nor postgres://…' }
    return address.type === 'sqlite' ? lookAtFile(address.path) : lookAtDatabase(address)
  },

  async clock({ store }) {
    const address = store === undefined ? undefined : storeAddress(store)
    if (address?.type !== 'postgres') return undefined
    try {
      const database = await openPostgres(address.connectionString)
      const before = Date.now()
      const there = await database.now().finally(() => database.close())
      // The database read its clock between our two readings, so only a time outside of these shows a difference.
      const skewMs = Math.max(before - there, there - Date.now(), 0)
      return { ok: skewMs <= SKEW_MS, text: `${skewMs} ms between this machine and the database` }
    } catch {
      return { ok: false, text: 'unknown, because the database does not answer' }
    }
  },

  async engine({ engine = 'local', restateIngress, restateAdmin }) {
    if (engine !== 'restate') return { ok: true, text: engine }
    const unreachable: string[] = []
    for (const [url, path] of [
      [restateIngress, '/restate/health'],
      [restateAdmin, '/health'],
    ] as const)
      if (url !== undefined) {
        const answer = await fetch(new URL(path, url), { signal: AbortSignal.timeout(3000) }).catch(
          () => undefined,
        )
        if (!answer?.ok) unreachable.push(url)
      }
    const ok = unreachable.length === 0
    return { ok, text: ok ? 'restate answers' : `${unreachable.join(', ')} does not answer` }
  },

  async server() {
    const server = readServerFile()
    if (!server) return { ok: true, text: 'none is running in this folder' }
    const ok = await isAnswering(server.url)
    const what = ok ? 'owns the store' : 'does not answer'
    return { ok, text: `${server.url} (process ${server.pid}) ${what}` }
  },

  port({ port = DEFAULT_PORT, host = '127.0.0.1' }) {
    const busy = { ok: true, text: `${port} is taken; \`dev\` uses the next free one` }
    const free = { ok: true, text: `${port} is free` }
    return new Promise((resolve) => {
      const probe = createServer()
      probe.once('error', () => resolve(busy))
      probe.listen(port, host, () => probe.close(() => resolve(free)))
    })
  },

  /** Whether the models of this folder have their API keys, as `check` and `dev` report it. */
  async models({ agents }) {
    const { DefinitionError } = await import('@skein/runtime')
    try {
      const registry = await loadDefinitions(agents)
      const [missing] = missingKeys(registry)
      if (!missing) return { ok: true, text: modelsOf(registry) || 'none' }
      return { ok: false, text: problemLine(missing) }
    } catch (error) {
      if (!(error instanceof DefinitionError)) throw error
      return { ok: false, text: 'the definitions have problems: skein check lists them' }
    }
  },

  /** Lists which API keys are set, also in `.env`: their names, never their values. */
  keys() {
    const names = vendors.flatMap(({ keyVariables }) => keyVariables)
    const present = names.filter((name) => (process.env[name] ?? '') !== '')
    const text = present.length > 0 ? present.join(', ') : 'none; the examples use a scripted model'
    return { ok: true, text }
  },
}

async function lookAtFile(file: string): Promise<Finding> {
  const folder = [dirname(file), dirname(dirname(file)), '.'].find((path) => existsSync(path))!
  try {
    accessSync(folder, constants.W_OK)
  } catch {
    return { ok: false, text: `${folder} cannot be written` }
  }
  const { bavail, bsize } = statfsSync(folder)
  const free = `${((bavail * bsize) / 1e9).toFixed(1)} GB free`
  if (bavail * bsize < LITTLE_BYTES) return { ok: false, text: `${file}: only ${free}` }
  if (!existsSync(file)) return { ok: true, text: `${file} (created when needed), ${free}` }
  // Opening the store shows whether another process uses it, which is no problem.
  const { sqliteStore } = await import('@skein/runtime')
  try {
    await sqliteStore({ path: file }).close()
    return { ok: true, text: `${file}, not in use, ${free}` }
  } catch (error) {
    const { code, message } = error as { readonly code?: unknown; readonly message: string }
    return { ok: code === 'STORE_LOCKED', text: message }
  }
}

async function lookAtDatabase(
  address: Extract<StoreAddress, { type: 'postgres' }>,
): Promise<Finding> {
  try {
    const store = await openPostgres(address.connectionString)
    const { threads } = await store.totals().finally(() => store.close())
    const count = [...threads.values()].reduce((sum, one) => sum + one, 0)
    return { ok: true, text: `${shownAddress(address)}, ${count} threads` }
  } catch (error) {
    return { ok: false, text: `${shownAddress(address)}: ${errorText(error)}` }
  }
}

/** `skein doctor` */
export const doctor: Command = defineCommand({
  operands: [],
  options: JSON_OPTION,
  examples: ['skein doctor', 'skein doctor --json'],
  async run({ values, output }) {
    const { config, problems } = await loadConfig(undefined)
    const findings: (Finding & { readonly name: string })[] = []
    for (const { setting, message } of problems)
      findings.push({ name: 'config', ok: false, text: `${setting}: ${message}` })
    for (const [name, look] of Object.entries(CHECKS)) {
      const finding = await look(config)
      if (finding) findings.push({ name, ...finding })
    }
    const rows = findings.map(({ name, ok, text }) => [ok ? 'ok' : 'PROBLEM', name, text])
    if (values.json) output.json({ findings })
    else for (const line of textTable(rows)) output.line(line)
    return findings.every(({ ok }) => ok) ? ExitCode.Done : ExitCode.Failed
  },
})
