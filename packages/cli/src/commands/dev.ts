import { readdirSync, watch, type FSWatcher } from 'node:fs'
import { join, relative } from 'node:path'
import type { DiscoveredRegistry, EmbeddedRuntime } from '@skein/runtime'
import type { ServeOptions, Serving } from '@skein/runtime/http'
import {
  loadDefinitions,
  localPerson,
  modelsOf,
  openRuntime,
  SECRET_KEY_VARIABLE,
} from '../connect/embed.ts'
import { removeServerFile, storeFile, writeServerFile } from '../connect/server-file.ts'
import {
  defineCommand,
  ExitCode,
  FOLDER_OPERAND,
  JSON_OPTION,
  usageError,
  type Command,
} from '../terminal/command.ts'
import { errorText, problemLine, type Output } from '../terminal/output.ts'

/** The port that `dev` tries first. */
export const DEFAULT_PORT = 4111
const PORT_TRIES = 50
/** How long running threads may continue after the server was told to stop. */
const GRACE_MS = 2000

/** `skein dev` */
export const dev: Command = defineCommand({
  operands: [FOLDER_OPERAND],
  options: {
    port: {
      type: 'string',
      value: 'number',
      description: `Port to listen on; if it is taken, the next free one. 0: any. Default: ${DEFAULT_PORT}.`,
    },
    log: {
      type: 'string',
      value: 'level',
      description:
        'What is logged to standard error: debug, info, warn, error or silent. Default: info.',
    },
    ...JSON_OPTION,
  },
  examples: ['skein dev', 'skein dev ./my-agents --port 8080'],
  async run({ values, operands: [folder], output }) {
    const port = Number(values.port ?? DEFAULT_PORT)
    if (!Number.isInteger(port) || port < 0 || port > 65_535)
      throw usageError(`--port takes a number from 0 to 65535, not "${values.port}".`)
    const registry = await loadDefinitions(folder)
    const { lineLogger } = await import('@skein/runtime')
    const logger = lineLogger({
      format: values.json === true ? 'json' : 'text',
      level: logLevel(values.log),
      write: (line) => output.say(line),
    })
    const runtime = await openRuntime(registry, { logger })
    try {
      await runtime.start()
      const serving = await listen(runtime, { port, auth: 'none', local: localPerson(), logger })
      const stopped = untilStopped(output)
      writeServerFile({ url: serving.url, pid: process.pid })
      const watching = watchFolder(registry.folder, (files) => void reload(registry, files, output))
      if (port !== 0 && serving.port !== port)
        output.say(`Port ${port} is taken; listening on ${serving.port} instead.`)
      announce(registry, serving, { output, isJson: values.json === true })
      await stopped
      watching.close()
      removeServerFile()
      await serving.close({ graceMs: GRACE_MS })
      return ExitCode.Done
    } finally {
      await runtime.stop({ graceMs: GRACE_MS })
    }
  },
})

const LOG_LEVELS = ['debug', 'info', 'warn', 'error', 'silent'] as const

function logLevel(given: unknown): (typeof LOG_LEVELS)[number] {
  const level = LOG_LEVELS.find((one) => one === (given ?? 'info'))
  if (level) return level
  throw usageError(`--log takes one of ${LOG_LEVELS.join(', ')}, not "${given}".`)
}

/** Serves on the port or, if the port is taken, on the next free port. */
async function listen(runtime: EmbeddedRuntime, options: ServeOptions): Promise<Serving> {
  const { serve } = await import('@skein/runtime/http')
  for (let port = options.port; ; port++) {
    try {
      return await serve(runtime, { ...options, port })
    } catch (error) {
      const isTaken = (error as { code?: unknown }).code === 'PORT_TAKEN'
      if (!isTaken || port - options.port >= PORT_TRIES || port >= 65_535) throw error
    }
  }
}

/** Resolves at the first SIGINT or SIGTERM, so that the server can stop. A second signal ends the process. */
function untilStopped(output: Output): Promise<void> {
  return new Promise((resolve) => {
    let isStopping = false
    const stop = (): void => {
      if (isStopping) process.exit(ExitCode.Interrupted)
      isStopping = true
      output.say('Stopping. Running threads are parked and continue at the next start.')
      resolve()
    }
    process.on('SIGINT', stop).on('SIGTERM', stop)
  })
}

/** Prints the address, the agents with their models, and the path of the store. */
function announce(
  registry: DiscoveredRegistry,
  { url }: Serving,
  { output, isJson }: { readonly output: Output; readonly isJson: boolean },
): void {
  const agents = [...registry.agents.keys()]
  const models = modelsOf(registry)
  const store = relative('', storeFile())
  if (isJson) return output.json({ url, agents, models, store })
  const label = (text: string): string => output.paint('dim', text.padEnd(8))
  output.line(`${label('address')}${output.paint('cyan', url)}`)
  output.line(`${label('agents')}${agents.join(', ')} (${models})`)
  output.line(`${label('store')}${store}`)
  if (!process.env[SECRET_KEY_VARIABLE])
    output.line(
      `${label('secrets')}key kept beside the store; set ${SECRET_KEY_VARIABLE} to keep it elsewhere`,
    )
}

async function reload(
  registry: DiscoveredRegistry,
  files: readonly string[],
  output: Output,
): Promise<void> {
  try {
    const problems = await registry.reload()
    if (problems.length === 0) return output.say(`reloaded: ${files.join(', ')}`)
    output.say(`${output.paint('red', 'not reloaded:')} the last good definitions stay in use.`)
    for (const problem of problems) output.say(`  ${problemLine(problem)}`)
  } catch (error) {
    output.say(`not reloaded: ${errorText(error)}`)
  }
}

/**
 * Editors write a file in several steps, so changes are reported only after this time without another change.
 */
const QUIET_MS = 60
/** Hidden, installed and built files are not watched. */
const IGNORED = /^(?:\.|node_modules$|dist$)/

/** Calls `changed` with the names of the files that changed beneath a folder. */
function watchFolder(
  folder: string,
  changed: (files: readonly string[]) => void,
): { close(): void } {
  const watchers = new Map<string, FSWatcher>()
  const names = new Set<string>()
  let timer: NodeJS.Timeout | undefined

  const note = (name: string): void => {
    if (name.split(/[\\/]/).some((part) => IGNORED.test(part))) return
    names.add(name)
    clearTimeout(timer)
    timer = setTimeout(() => {
      const files = [...names].toSorted()
      names.clear()
      watchSubfolders()
      changed(files)
    }, QUIET_MS)
  }
  const open = (path: string, recursive: boolean, onName: (name: string) => void): FSWatcher => {
    const watcher = watch(path, { recursive }, (_, name) => onName(name ?? ''))
    // The folder was removed, which the watcher of its parent reports.
    watcher.on('error', () => watcher.close())
    return watcher
  }
  /** Creates one recursive watcher per top-level folder, so that node_modules is never read. */
  const watchSubfolders = (): void => {
    const found = readdirSync(folder, { withFileTypes: true })
      .filter((entry) => entry.isDirectory() && !IGNORED.test(entry.name))
      .map(({ name }) => name)
    for (const [name, watcher] of watchers)
      if (name !== '' && !found.includes(name)) {
        watcher.close()
        watchers.delete(name)
      }
    for (const name of found) {
      if (watchers.has(name)) continue
      const watcher = open(join(folder, name), true, (file) => note(`${name}/${file}`))
      watchers.set(name, watcher)
    }
  }

  watchers.set('', open(folder, false, note))
  watchSubfolders()
  return {
    close() {
      clearTimeout(timer)
      for (const watcher of watchers.values()) watcher.close()
    },
  }
}
