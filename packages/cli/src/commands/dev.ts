import { existsSync } from 'node:fs'
import { relative } from 'node:path'
import type { DiscoveredRegistry, EmbeddedRuntime } from '@skein/runtime'
import type { ServeOptions, Serving } from '@skein/server'
import { loadConfig, type SkeinConfig } from '../config/config.ts'
import { openRuntime, SECRET_KEY_VARIABLE } from '../connect/open-runtime.ts'
import { examplesNotice, loadDefinitions } from '../connect/definitions.ts'
import { localPerson } from '../connect/local-fetch.ts'
import { missingKeys, modelsOf } from '../connect/agent-models.ts'
import { removeServerFile, writeServerFile } from '../connect/server-file.ts'
import { storeFile } from '../config/project-folder.ts'
import {
  type Command,
  CommandError,
  defineCommand,
  ExitCode,
  FOLDER_OPERAND,
  JSON_OPTION,
  LOG_LEVELS,
  type TextOption,
  untilSignal,
  usageError,
} from '../terminal/command.ts'
import { openBrowser } from '../terminal/open-browser.ts'
import type { Output } from '../terminal/output.ts'
import { errorText, problemLine } from '../terminal/format.ts'
import { watchDefinitions } from '../config/watch-definitions.ts'

/** The port that `dev` tries first. */
export const DEFAULT_PORT = 4111
const PORT_TRIES = 50
/** How long running threads may continue after the server received the signal to stop, in ms. */
const GRACE_MS = 2000

/** `--port` */
export const PORT_OPTION: TextOption = {
  type: 'string',
  value: 'number',
  description: `Port to listen on; if it is taken, the next free one. 0: any. Default: ${DEFAULT_PORT}.`,
}

/** `skein dev` */
export const dev: Command = defineCommand({
  operands: [FOLDER_OPERAND],
  options: {
    port: PORT_OPTION,
    origin: {
      type: 'string',
      value: 'origins',
      description:
        'Pages of this machine that may call the server, e.g. http://localhost:5173; several after commas.',
    },
    log: {
      type: 'string',
      value: 'level',
      description:
        'What is logged to standard error: debug, info, warn, error or silent. Default: info.',
    },
    open: { type: 'boolean', description: 'Opens Studio in the browser.' },
    ...JSON_OPTION,
  },
  examples: ['skein dev --open', 'skein dev ./my-agents --port 8080'],
  async run({ values, operands: [folder], output }) {
    const { config, problems } = await loadConfig(undefined)
    for (const { setting, message } of problems) output.say(`warning: ${setting}: ${message}`)
    const port = portOf(values.port ?? config.port)
    const origins = pageOrigins(values.origin, config)
    const registry = await loadDefinitions(folder ?? config.agents)
    const { lineLogger } = await import('@skein/runtime')
    const logger = lineLogger({
      format: values.json === true ? 'json' : 'text',
      level: logLevel(values.log),
      write: (line) => output.say(line),
    })
    const { limits, spending, retention } = config
    const runtime = await openRuntime(registry, { logger, limits, spending, retention })
    try {
      await runtime.start()
      const local = localPerson()
      const { studioFiles } = await import('@skein/studio')
      const serving = await listen(runtime, {
        port,
        auth: 'none',
        local,
        cors: { origins },
        logger,
        requestLogLevel: 'debug', // one opening of Studio makes dozens, and the developer's own lines matter more
        studio: studioFiles(),
        playground: true,
      })
      const end = untilSignal().then(() =>
        output.say('Stopping. Running threads are parked and continue at the next start.'),
      )
      writeServerFile({ url: serving.url, pid: process.pid })
      const watching = await watchDefinitions(
        registry,
        (files) => void reload(registry, files, output),
      )
      if (port !== 0 && serving.port !== port)
        output.say(`Port ${port} is taken; listening on ${serving.port} instead.`)
      announce(registry, serving, { output, isJson: values.json === true })
      const notice = examplesNotice(folder ?? config.agents)
      if (notice !== undefined) output.say(notice)
      if (values.open) openBrowser(`${serving.url}/studio/`, output)
      await end
      await watching.close()
      removeServerFile()
      await serving.close({ graceMs: GRACE_MS })
      return ExitCode.Done
    } finally {
      await runtime.stop({ graceMs: GRACE_MS })
    }
  },
})

/** How often `studio` looks for new files. */
const REFRESH_MS = 1000

/** `skein studio` */
export const studio: Command = defineCommand({
  operands: [
    {
      name: 'path',
      description:
        'Folder that `inspector()` writes, or a file of `thread export`. Default: .skein/inspector.',
      isOptional: true,
    },
  ],
  options: {
    port: PORT_OPTION,
    ...JSON_OPTION,
  },
  examples: ['skein studio', 'skein studio thread.jsonl --port 8080'],
  async run({ values, operands: [path], output }) {
    const port = portOf(values.port)
    if (path !== undefined && !existsSync(path))
      throw new CommandError(`${path} is not there.`, {
        code: 'FILE_UNREADABLE',
        hint: 'Name a folder that `inspector({ folder })` writes, or a file of `skein thread export`.',
      })
    const { openInspected } = await import('@skein/server/inspector')
    const { studioFiles } = await import('@skein/studio')
    const { runtime, refresh } = await openInspected(path)
    const show = async (): Promise<void> => {
      for (const problem of await refresh()) output.say(`not shown: ${problem}`)
    }
    try {
      await show()
      // The page may only read, because the threads that it shows were run by another program.
      const local = { tenant: 'default', scopes: ['threads:read', 'logs:read'] } as const
      const serving = await listen(runtime, { port, auth: 'none', local, studio: studioFiles() })
      const end = untilSignal().then(() => output.say('Stopping.'))
      const address = `${serving.url}/studio/`
      if (values.json) output.json({ url: serving.url, studio: address })
      else output.line(`${output.paint('dim', 'studio'.padEnd(8))}${output.paint('cyan', address)}`)
      const timer = setInterval(() => void show(), REFRESH_MS)
      await end
      clearInterval(timer)
      await serving.close({ graceMs: 0 })
      return ExitCode.Done
    } finally {
      await runtime.stop({ graceMs: 0 })
    }
  },
})

/** The port that a flag or a setting names. */
export function portOf(given: string | number | undefined): number {
  const port = Number(given ?? DEFAULT_PORT)
  if (Number.isInteger(port) && port >= 0 && port <= 65_535) return port
  throw usageError(`--port takes a number from 0 to 65535, not "${given}".`)
}

/**
 * Returns the origins of pages that may call the server: those of the flag, else those of the configuration
 * that are on this machine. This server asks for no key, so it answers no page of another machine.
 */
function pageOrigins(flag: string | undefined, { origins = [] }: SkeinConfig): readonly string[] {
  const isLocal = (origin: string): boolean => {
    const url = URL.parse(origin)
    return url?.origin === origin && /^(?:localhost|127(?:\.\d+){3}|\[::1\])$/.test(url.hostname)
  }
  if (flag === undefined) return origins.filter(isLocal)
  const values = flag.split(',').map((origin) => origin.trim().replace(/\/$/, ''))
  const wrong = values.find((origin) => !isLocal(origin))
  if (wrong === undefined) return values
  throw usageError(
    `--origin takes pages of this machine, not "${wrong}".`,
    'E.g. http://localhost:5173. For pages elsewhere use `skein serve`, which asks for keys.',
  )
}

function logLevel(given: unknown): (typeof LOG_LEVELS)[number] {
  const level = LOG_LEVELS.find((one) => one === (given ?? 'info'))
  if (level) return level
  throw usageError(`--log takes one of ${LOG_LEVELS.join(', ')}, not "${given}".`)
}

/** Serves on the port or, if the port is taken, on the next free port. */
async function listen(runtime: EmbeddedRuntime, options: ServeOptions): Promise<Serving> {
  const { serve } = await import('@skein/server')
  for (let port = options.port; ; port++) {
    try {
      return await serve(runtime, { ...options, port })
    } catch (error) {
      const isTaken = (error as { code?: unknown }).code === 'PORT_TAKEN'
      if (!isTaken || port - options.port >= PORT_TRIES || port >= 65_535) throw error
    }
  }
}

/** Prints the addresses of Studio and the API, the agents with their models, and the path of the store. */
function announce(
  registry: DiscoveredRegistry,
  { url }: Serving,
  { output, isJson }: { readonly output: Output; readonly isJson: boolean },
): void {
  const agents = [...registry.agents.keys()]
  const models = modelsOf(registry)
  const store = relative('', storeFile())
  const problems = missingKeys(registry)
  const studio = `${url}/studio/`
  if (isJson) return output.json({ url, studio, agents, models, store, problems })
  const label = (text: string): string => output.paint('dim', text.padEnd(8))
  output.line(`${label('address')}${output.paint('cyan', url)}`)
  output.line(`${label('studio')}${output.paint('cyan', studio)}`)
  output.line(`${label('agents')}${agents.join(', ')} (${models})`)
  output.line(`${label('store')}${store}`)
  if (!process.env[SECRET_KEY_VARIABLE])
    output.line(
      `${label('secrets')}key kept next to the store; set ${SECRET_KEY_VARIABLE} to keep it elsewhere`,
    )
  // Problems that would make the first message fail are printed at the start.
  for (const problem of problems)
    output.say(`${output.paint('red', 'will fail:')} ${problemLine(problem)}`)
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
