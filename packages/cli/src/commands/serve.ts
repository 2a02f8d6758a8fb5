import { randomUUID } from 'node:crypto'
import type {
  EmbeddedRuntime,
  Registry,
  RuntimeLogger,
  RuntimeOptions,
  Store,
} from '@skein/runtime'
import type { Auth, Serving } from '@skein/server'
import { readGovernanceKeys } from '../connect/governance-keys.ts'
import { createDispatcher, createNodes, nodeAddress } from '../connect/nodes.ts'
import { openStore } from '../connect/stores.ts'
import { type ConfigProblem, loadConfig, type SkeinConfig } from '../config/config.ts'
import { projectFolder } from '../config/project-folder.ts'
import { checkSettings, type SafeSettings, shownAddress } from '../config/refusals.ts'
import { missingKeys, modelsByAgent, scriptedAgents } from '../connect/agent-models.ts'
import {
  type Command,
  CommandError,
  defineCommand,
  ExitCode,
  FOLDER_OPERAND,
  untilSignal,
} from '../terminal/command.ts'
import { lineText } from '../terminal/table.ts'
import { problemLine } from '../terminal/format.ts'

const DRAIN_SECONDS = 20

/** `skein serve` */
export const serveCommand: Command = defineCommand({
  operands: [FOLDER_OPERAND],
  options: {
    config: {
      type: 'string',
      value: 'file',
      description: 'Configuration. Default: skein.config.ts, .js, .mjs or .json of this folder.',
    },
    host: { type: 'string', value: 'address', description: 'Address to listen on.' },
    port: { type: 'string', value: 'number', description: 'Port to listen on.' },
    check: { type: 'boolean', description: 'Checks the configuration and exits.' },
    scripted: {
      type: 'boolean',
      description:
        'Also serves agents whose model is scripted, e.g. for a demo. Without it they are refused.',
    },
  },
  examples: ['skein serve', 'skein serve --config production.config.ts --check'],
  async run({ values, operands: [folder], output }) {
    const flags: Record<string, string> = {}
    if (folder !== undefined) flags['SKEIN_AGENTS'] = folder
    if (values.host !== undefined) flags['SKEIN_HOST'] = values.host
    if (values.port !== undefined) flags['SKEIN_PORT'] = values.port
    const configuration = await loadConfig(values.config, flags)
    const { settings, problems } = checkSettings(configuration.config)
    const registries = await readDefinitions(
      settings.config,
      [...configuration.problems, ...problems],
      values.scripted === true,
    )
    if (values.check) {
      for (const [agent, models] of Object.entries(modelsByAgent(registries.current)))
        output.say(`agent ${lineText(agent)}: ${lineText(models)}`)
      output.say(
        `Safe to start: ${settings.host}:${settings.port}, ${shownAddress(settings.store)}.`,
      )
      return ExitCode.Done
    }
    const { lineLogger } = await import('@skein/runtime')
    const { logFormat, logLevel = 'info' } = settings.config
    const logger = lineLogger({
      format: logFormat === 'text' ? 'text' : 'json',
      level: logLevel as 'info', // `checkSettings` refuses other words
      write: (line) => output.say(line),
    })
    for (const name of configuration.unknownVariables)
      logger.warn({ variable: name }, 'nothing reads this variable')
    if (settings.store.type === 'postgres' && settings.nodeSecret === undefined)
      logger.warn({}, 'no nodeSecret is set, so this has to be the only node of its database')
    if (process.getuid?.() === 0) logger.warn({}, 'the server runs as root')
    return serveUntilStopped(settings, registries, logger)
  },
})

/** Throws one error with all reasons why the server must not start. */
function refuseToStart(problems: readonly ConfigProblem[]): void {
  if (problems.length === 0) return
  const lines = problems.map(({ setting, message }) => `\n  ${setting}: ${message}`)
  const count = problems.length === 1 ? '1 reason' : `${problems.length} reasons`
  throw new CommandError(`The server does not start, for ${count}:${lines.join('')}`, {
    code: 'CONFIG_UNSAFE',
    hint: 'The page "Deploying" of the docs has every setting with its variable; `skein dev` shows it at /studio/docs/.',
    exitCode: ExitCode.Usage,
  })
}

/** The definitions that are served, and those of the previous version, with which older sessions continue. */
interface Definitions {
  readonly current: Registry
  readonly previous: Registry | undefined
}

/**
 * Loads both folders of definitions. Throws if there are problems with settings, and if the definitions have problems
 * that would make a thread fail later; the error lists all of them.
 */
async function readDefinitions(
  { agents = projectFolder(), previous }: SkeinConfig,
  ofSettings: readonly ConfigProblem[],
  allowsScripted: boolean,
): Promise<Definitions> {
  const { discover, DefinitionError } = await import('@skein/runtime')
  const problems = [...ofSettings]
  const load = async (setting: string, folder: string): Promise<Registry | undefined> => {
    // Such a folder was refused before, e.g. because it does not exist.
    if (ofSettings.some((one) => one.setting === setting)) return undefined
    try {
      const registry = await discover(folder)
      const scripts = allowsScripted ? [] : scriptedAgents(registry)
      for (const problem of [...missingKeys(registry), ...scripts])
        problems.push({ setting, message: problemLine(problem) })
      return registry
    } catch (error) {
      if (!(error instanceof DefinitionError)) throw error
      for (const problem of error.problems)
        problems.push({ setting, message: problemLine(problem) })
      return undefined
    }
  }
  const current = await load('agents', agents)
  const before = previous === undefined ? undefined : await load('previous', previous)
  refuseToStart(problems)
  return { current: current!, previous: before } // without problems it was loaded
}

/** Opens the store and starts the server. After a signal to stop, lets running requests and threads end. */
async function serveUntilStopped(
  settings: SafeSettings,
  definitions: Definitions,
  logger: RuntimeLogger,
): Promise<ExitCode> {
  const { config } = settings
  const graceMs = (config.drainSeconds ?? DRAIN_SECONDS) * 1000
  const owner = `${config.id ?? 'skein'}-${process.pid}-${randomUUID()}`
  // A separate address for notifications (`storeDirect`) means that the store's address leads to a connection pooler.
  const store = await openStore(settings.store, { isPooled: config.storeDirect !== undefined })
  const drainState: { working: readonly string[]; parked: number } = { working: [], parked: 0 }
  const counting = beforeClose(store, async () => {
    drainState.parked = await countUnfinished(store, drainState.working)
  })
  const runtime = await startRuntime(settings, definitions, { store: counting, owner, logger })
  let serving: Serving
  try {
    serving = await listen(runtime, settings, logger)
  } catch (error) {
    await runtime.stop({ graceMs: 0 })
    throw error
  }
  const text = 'ended immediately by a second signal'
  const stopSignal = untilSignal((signal) => logger.warn({ signal }, text))
  logger.info(
    {
      url: serving.url,
      agents: [...definitions.current.agents.keys()],
      models: modelsByAgent(definitions.current),
      store: shownAddress(settings.store),
      engine: settings.engine,
      pid: process.pid,
    },
    'listening',
  )
  const signal = await stopSignal
  const startedAt = performance.now()
  drainState.working = await threadsOf(store, owner).catch(() => [])
  logger.info({ signal, threads: drainState.working.length, graceMs }, 'draining')
  // Requests may wait for the result of a thread, so the threads continue while the open requests are finished.
  await serving.close({ graceMs })
  const leftMs = Math.max(graceMs - (performance.now() - startedAt), 0)
  await runtime.stop({ graceMs: leftMs })
  const ms = Math.round(performance.now() - startedAt)
  const finishCount = drainState.working.length - drainState.parked
  const counts = { signal, finished: finishCount, parked: drainState.parked, ms }
  logger.info(counts, `drained: ${finishCount} threads finished, ${drainState.parked} parked`)
  return ExitCode.Done
}

/** Returns the threads on which this process works. */
async function threadsOf(store: Store, owner: string): Promise<readonly string[]> {
  const lists = (['running', 'stopping'] as const).map((lifecycle) =>
    store.list({ lifecycle, limit: 1000 }),
  )
  const running = (await Promise.all(lists)).flat()
  return running.filter(({ lease }) => lease?.owner === owner).map(({ id }) => id)
}

/** Counts the threads whose work another process, or the next start of this one, has to continue. */
async function countUnfinished(store: Store, ids: readonly string[]): Promise<number> {
  const heads = await Promise.all(ids.map((id) => store.head(id).catch(() => undefined)))
  const isUnfinished = (lifecycle: string): boolean =>
    lifecycle === 'running' || lifecycle === 'queued' || lifecycle === 'stopping'
  return heads.filter((head) => head && isUnfinished(head.lifecycle)).length
}

/** Returns a store that does some work before it closes. */
function beforeClose(store: Store, work: () => Promise<void>): Store {
  const close = async (): Promise<void> => {
    await work().catch(() => undefined) // a store that cannot be read is closed all the same
    await store.close()
  }
  return new Proxy(store, {
    get(target, name) {
      if (name === 'close') return close
      const member: unknown = Reflect.get(target, name, target)
      // Methods are bound to the store itself: they use private fields, which the proxy does not have.
      return typeof member === 'function' ? member.bind(target) : member
    },
  })
}

async function startRuntime(
  settings: SafeSettings,
  { current, previous }: Definitions,
  parts: Pick<RuntimeOptions, 'owner' | 'logger'> & { readonly store: Store },
): Promise<EmbeddedRuntime> {
  const { config, secretKey, oldSecretKeys, nodeSecret } = settings
  // With several nodes the default is `session`: a node with another version might lack tools of the session.
  const { pin = nodeSecret === undefined ? 'none' : 'session' } = config
  const { createRuntime } = await import('@skein/runtime')
  const { limits, maxConcurrent, spending, retention, id } = config
  try {
    const runtime = await createRuntime({
      registry: current,
      previous,
      pin,
      nodes: await createNodes(settings),
      id,
      secretKey,
      oldSecretKeys,
      keys: await readGovernanceKeys(config.governanceKeys!), // `checkSettings` requires them
      limits,
      maxConcurrent,
      spending,
      retention,
      dispatcher: await createDispatcher(settings),
      ...parts,
    })
    await runtime.start()
    return runtime
  } catch (error) {
    await parts.store.close()
    throw error
  }
}

async function listen(
  runtime: EmbeddedRuntime,
  { config, host, port, authKeys }: SafeSettings,
  logger: RuntimeLogger,
): Promise<Serving> {
  const { jwtAuth, serve } = await import('@skein/server')
  const { studioFiles } = await import('@skein/studio')
  const { jwt, allowedHosts = [], origins, prefix, httpLimits, proxies = 0 } = config
  const ownHost = URL.parse(nodeAddress(config) ?? '')?.hostname
  const keys = authKeys.length > 0 ? [{ keys: authKeys }] : []
  const own = typeof config.auth === 'function' ? [config.auth] : []
  const auth: Auth = [...keys, ...(jwt ? [jwtAuth(jwt)] : []), ...own]
  return serve(runtime, {
    host,
    port,
    auth,
    prefix,
    // The host name in this node's own address is allowed too, because other nodes use it.
    allowedHosts: ownHost === undefined ? allowedHosts : [...allowedHosts, ownHost],
    cors: origins && { origins },
    limits: httpLimits,
    // Everybody can load these files; the data that they show is requested with a key, like any other request.
    studio: studioFiles(),
    clientAddress: proxies === 0 ? undefined : (request) => forwardedFor(request, proxies),
    logger,
  })
}

/**
 * Returns the client's address as the outermost trusted proxy has seen it. Each proxy appends the
 * address of its client to the list, so only the last `proxies` entries can be trusted.
 */
function forwardedFor({ headers }: Request, proxies: number): string | undefined {
  const addresses = (headers.get('x-forwarded-for') ?? '').split(',').map((one) => one.trim())
  return addresses.at(-proxies) || undefined
}
