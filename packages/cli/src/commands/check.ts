import { accessSync, constants, existsSync, statfsSync, statSync } from 'node:fs'
import { createServer } from 'node:net'
import { dirname, join, resolve } from 'node:path'
import { vendors } from '@skein/ai/vendors'
import type { Registry, StrandedReport } from '@skein/runtime'
import { loadConfig, type SkeinConfig } from '../config/config.ts'
import { shownAddress, storeAddress, type StoreAddress } from '../config/refusals.ts'
import { openPostgres } from '../connect/connect.ts'
import {
  examplesNotice,
  isAnswering,
  loadDefinitions,
  missingKeys,
  modelsOf,
  readServerFile,
  storeFile,
} from '../connect/embed.ts'
import {
  type Command,
  defineCommand,
  ExitCode,
  FOLDER_OPERAND,
  JSON_OPTION,
} from '../terminal/command.ts'
import { errorText, type Output, problemLine, textTable } from '../terminal/output.ts'
import { DEFAULT_PORT } from './dev.ts'

/** `skein check` */
export const check: Command = defineCommand({
  operands: [FOLDER_OPERAND],
  options: {
    strict: { type: 'boolean', description: 'Counts warnings as problems.' },
    'without-keys': {
      type: 'boolean',
      description: 'Does not ask for the API keys of models, e.g. in CI.',
    },
    against: {
      type: 'string',
      value: 'store',
      description:
        'Also lists the threads that a deploy of these definitions would strand: a folder with skein.db, or the file. It is only read.',
    },
    pinned: {
      type: 'boolean',
      description: 'With --against: the server pins sessions to the definitions they began with.',
    },
    ...JSON_OPTION,
  },
  examples: ['skein check examples/agents --json', 'skein check ./next --against .skein'],
  async run({ values, operands: [folder], output }) {
    const { DefinitionError } = await import('@skein/runtime')
    const loaded = await loadDefinitions(folder).catch((error: unknown) => {
      if (error instanceof DefinitionError) return error
      throw error
    })
    const notice = examplesNotice(folder)
    if (notice !== undefined) output.say(notice)
    const isBroken = loaded instanceof DefinitionError
    const problems = isBroken ? loaded.problems : values['without-keys'] ? [] : missingKeys(loaded)
    const warnings = isBroken ? [] : loaded.warnings
    const agents = isBroken ? [] : [...loaded.agents.keys()]
    const found = values.strict ? [...problems, ...warnings] : problems
    const { against } = values
    const pin = values.pinned ? 'session' : 'none'
    // Definitions with problems cannot be deployed, so they are not compared with the running threads.
    const stranded =
      isBroken || against === undefined ? undefined : await compared(loaded, { against, pin })
    if (values.json) output.json({ agents, problems: found, warnings, stranded })
    else {
      for (const problem of found) output.line(problemLine(problem))
      if (!values.strict) for (const one of warnings) output.say(`warning: ${problemLine(one)}`)
    }
    const count = found.length === 1 ? '1 problem' : `${found.length} problems`
    output.say(found.length > 0 ? count : `No problems. Agents: ${agents.join(', ') || 'none'}.`)
    if (stranded) show(stranded, { output, isJson: values.json === true })
    const isBad = found.length > 0 || (stranded?.count ?? 0) > 0
    return isBad ? ExitCode.Failed : ExitCode.Done
  },
})

async function compared(
  registry: Registry,
  { against, pin }: { readonly against: string; readonly pin: 'none' | 'session' },
): Promise<StrandedReport> {
  const { findStranded, readSqliteStore } = await import('@skein/runtime')
  const path = resolve(against)
  const isFolder = statSync(path, { throwIfNoEntry: false })?.isFile() !== true
  const store = readSqliteStore(isFolder ? join(path, 'skein.db') : path)
  try {
    return await findStranded(registry, store, { pin })
  } finally {
    await store.close()
  }
}

/** Prints one line for each finding and, unless the output is JSON, the totals. */
function show(
  { findings, count, threads, unread, changed, idle }: StrandedReport,
  { output, isJson }: { readonly output: Output; readonly isJson: boolean },
): void {
  if (!isJson)
    for (const { threadId, agent, problem, message } of findings)
      output.line(`${threadId}: ${problem}: agent "${agent}": ${message}`)
  if (count > findings.length) output.say(`… and ${count - findings.length} more.`)
  const more = unread > 0 ? `; ${unread} more were not read` : ''
  output.say(`${threads} threads read${more}: ${count === 0 ? 'none' : count} would be stranded.`)
  if (changed > 0)
    output.say(`${changed} sessions began with other definitions and would continue.`)
  for (const [agent, number] of Object.entries(idle))
    output.say(`${number} idle threads of "${agent}", which is gone, wait when they get a message.`)
}

/** The result of one check. Its text may name a secret but never contains its value. */
interface Finding {
  readonly ok: boolean
  readonly text: string
}

type Look = (config: SkeinConfig) => Finding | undefined | Promise<Finding | undefined>

/** If less disk space is free, the check warns: the store will soon be unable to write. */
const LITTLE_BYTES = 256 * 1024 * 1024
/** If the clocks of two machines differ by more, the check warns: threads that wait go on late or early. */
const SKEW_MS = 2000

/** The checks of `skein doctor`, in the order of its report. A check that does not apply returns undefined. */
const CHECKS: Readonly<Record<string, Look>> = {
  node() {
    const { node: version } = process.versions
    return { ok: Number(version.split('.')[0]) >= 24, text: `${version} (24 or newer)` }
  },

  /** Checks that all packages have the same version: they are released together. */
  async packages() {
    const found = new Map<string, string>()
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
      if (manifest !== undefined) found.set(name, manifest)
    }
    const ok = new Set(found.values()).size <= 1
    const text = [...found].map(([name, version]) => `${name} ${version}`).join(', ')
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
      const opened = await openPostgres(address.connectionString)
      const before = Date.now()
      const there = await opened.now().finally(() => opened.close())
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
    const found = readServerFile()
    if (!found) return { ok: true, text: 'none runs in this folder' }
    const ok = await isAnswering(found.url)
    const what = ok ? 'owns the store' : 'does not answer'
    return { ok, text: `${found.url} (process ${found.pid}) ${what}` }
  },

  port({ port = DEFAULT_PORT, host = '127.0.0.1' }) {
    const taken = { ok: true, text: `${port} is taken; \`dev\` uses the next free one` }
    const free = { ok: true, text: `${port} is free` }
    return new Promise((resolve) => {
      const probe = createServer()
      probe.once('error', () => resolve(taken))
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
