import { randomBytes } from 'node:crypto'
import { existsSync, mkdirSync, readFileSync, rmSync, writeFileSync } from 'node:fs'
import { findPackageJSON } from 'node:module'
import { userInfo } from 'node:os'
import { dirname, join, resolve } from 'node:path'
import type { ModelReference } from '@skein/ai'
import { vendors } from '@skein/ai/vendors'
import { isPlainObject } from '@skein/base'
import type {
  DiscoveredRegistry,
  EmbeddedRuntime,
  Problem,
  Registry,
  RuntimeOptions,
  SecretKeyOptions,
} from '@skein/runtime'
import type { Http, Principal } from '@skein/server'
import { envFile, readEnvFile } from '../config/env-file.ts'
import { projectFolder, STATE_FOLDER } from '../config/project-folder.ts'
import { CommandError } from '../terminal/command.ts'

/**
 * Loads the definitions of a folder. Throws if the folder does not exist, or if definitions have problems;
 * the error then lists all of them.
 */
export async function loadDefinitions(named: string | undefined): Promise<DiscoveredRegistry> {
  const folder = definitionsFolder(named)
  readEnvFile()
  if (!existsSync(folder))
    throw new CommandError(`There is no folder ${folder}.`, {
      code: 'FOLDER_NOT_FOUND',
      hint: 'Name a folder that holds agents/, prompts/ and tools/.',
    })
  const { discover } = await import('@skein/runtime')
  return discover(folder)
}

/**
 * Finds models whose API key is missing: their first request would fail. `files` are the files in which
 * variables were looked for, besides the environment.
 */
export function missingKeys(
  { agents }: Pick<Registry, 'agents'>,
  files: readonly string[] = [envFile()],
): readonly Problem[] {
  const problems = new Map<string, Problem>()
  const places = files.map((file) => `${file}${existsSync(file) ? '' : ' (no such file)'}`)
  for (const { name, a, b } of agents.values())
    for (const { prompt } of (b ? [a, b] : [a]).filter(isModelSide))
      for (const { model, definition } of prompt.models) {
        const { apiKey, headers } = definition?.config ?? {}
        const variables =
          vendors.find((one) => one.name === model.provider.name)?.keyVariables ?? []
        const isSet = variables.some((variable) => (process.env[variable] ?? '') !== '')
        if (variables.length === 0 || isSet || apiKey !== undefined || headers !== undefined)
          continue
        const subject = `agent "${name}"`
        const message = `there is no API key for ${model.provider.name}: ${variables.join(' or ')} is not set; looked in ${['the environment', ...places].join(' and ')}`
        problems.set(`${subject} ${model.modelId}`, {
          subject,
          field: `model ${model.modelId}`,
          message,
        })
      }
  return [...problems.values()]
}

const SCRIPTED = 'scripted'

/** Returns the models of each agent, by its name: the vendor and the model of each side. */
export function modelsByAgent({
  agents,
}: Pick<Registry, 'agents'>): Readonly<Record<string, string>> {
  const models = [...agents.values()].map(({ name, a, b }): [string, string] => {
    const sides = (b ? [a, b] : [a]).filter(hasModel)
    const names = sides.flatMap(({ prompt }) =>
      prompt.models.map(({ model }) => `${model.provider.name} ${model.modelId}`),
    )
    return [name, [...new Set(names)].join(', ') || 'code of its own']
  })
  return Object.fromEntries(models)
}

/** Finds agents that answer from a script: with such a model a server would tell its users what a test says. */
export function scriptedAgents({ agents }: Pick<Registry, 'agents'>): readonly Problem[] {
  return [...agents.values()].flatMap(({ name, a, b }) =>
    (b ? [a, b] : [a]).filter(hasModel).flatMap(({ prompt }) =>
      prompt.models
        .filter(({ model }) => isScripted(model))
        .map(({ model: { modelId } }) => ({
          subject: `agent "${name}"`,
          field: '',
          message: `answers from a script ("${modelId}") and asks no vendor. Give it the model of a vendor; in a project of \`npm create skein\`, put a key into .env. --scripted serves the script`,
        })),
    ),
  )
}

/** Whether a model is a script, or may ask one: the id of a fallback or a route has the names of its members. */
function isScripted({ provider, modelId }: ModelReference): boolean {
  if (provider.name !== 'fallback' && provider.name !== 'route') return provider.name === SCRIPTED
  return modelId.split('|').some((member) => /^(?:(?:fallback|route)\/)*scripted\//.test(member))
}

type AgentSide = NonNullable<ReturnType<Registry['agents']['get']>>['a']

/** Whether a model answers for a side of an agent: its own, or that of an `agent()` of `@skein/agents`. */
function hasModel({ handler }: AgentSide): boolean {
  return handler === undefined
}

/** Whether a side of an agent is answered by its models; otherwise its code asks a model itself, or none. */
function isModelSide({ handler, agent }: AgentSide): boolean {
  return handler === undefined && agent === undefined
}

/** Returns the names of the models that the agents use, in one line. */
export function modelsOf({ agents }: Pick<Registry, 'agents'>): string {
  const names = new Set<string>()
  for (const { a, b } of agents.values())
    for (const { prompt } of b ? [a, b] : [a])
      for (const { model } of prompt.models) {
        const provider = model.provider.name
        const isScripted = provider === SCRIPTED
        names.add(isScripted ? 'scripted model, no key used' : `${provider} ${model.modelId}`)
      }
  return [...names].join(', ')
}

/** Creates a runtime without threads, for commands that only read where there is no store yet. Nothing is written. */
export async function openEmptyRuntime(registry: Registry): Promise<EmbeddedRuntime> {
  const { createRuntime, memoryStore } = await import('@skein/runtime')
  return createRuntime({ registry, store: memoryStore(), secretKey: randomBytes(32) })
}

/** Opens the store of this folder and creates a runtime for it. Threads run once the runtime is started. */
export async function openRuntime(
  registry: Registry,
  options: Pick<RuntimeOptions, 'onError' | 'logger' | 'limits' | 'spending' | 'retention'>,
): Promise<EmbeddedRuntime> {
  const { createRuntime } = await import('@skein/runtime')
  try {
    return await createRuntime({ registry, folder: stateFolder(), ...options, ...secretKeys() })
  } catch (error) {
    if (!(error instanceof Error) || (error as { code?: unknown }).code !== 'STORE_LOCKED')
      throw error
    const server = readServerFile()
    throw new CommandError(error.message, {
      code: 'STORE_LOCKED',
      hint: server
        ? `A server runs there: ${server.url}. Use it with --url ${server.url}, or stop it (process ${server.pid}).`
        : 'Only one process can use a store: wait until the other one ends, or stop it.',
      cause: error,
    })
  }
}

/** The environment variable with the keys that encrypt stored secrets. */
export const SECRET_KEY_VARIABLE = 'SKEIN_SECRET_KEY'

/**
 * Returns the keys that encrypt stored secrets, from the environment: the current one, then older ones after
 * commas. If the variable is not set, a key is created and kept beside the store, which is only for development.
 */
function secretKeys(): SecretKeyOptions {
  const [secretKey, ...oldSecretKeys] = (process.env[SECRET_KEY_VARIABLE] ?? '')
    .split(',')
    .map((key) => key.trim())
    .filter((key) => key !== '')
  return secretKey === undefined ? { keepsSecretKeyWithData: true } : { secretKey, oldSecretKeys }
}

/** Sends an HTTP request to a runtime, as `fetch` does. */
export type RuntimeFetch = (input: string | URL | Request, init?: RequestInit) => Promise<Response>

/**
 * Returns a `fetch` for a runtime in this process. So commands always send HTTP requests, and need no
 * second version for a runtime without a server.
 */
export async function localFetch(runtime: EmbeddedRuntime): Promise<RuntimeFetch> {
  const { createHttp } = await import('@skein/server')
  const http = createHttp(runtime, { auth: 'none', local: localPerson() })
  return (input, init) => fetchLocally(http, new Request(input, init), init?.signal ?? undefined)
}

/**
 * Answers a request without a socket. When the signal aborts, the promise rejects and the body ends, as
 * with `fetch`. It listens to the given `signal`, not to `request.signal`, which only follows the given
 * one through a weak reference and may be garbage collected before it aborts.
 */
async function fetchLocally(
  http: Http,
  request: Request,
  signal: AbortSignal | undefined,
): Promise<Response> {
  if (!signal) return http.fetch(request)
  signal.throwIfAborted()
  const answered = new AbortController()
  const aborted = new Promise<never>((_, reject) => {
    const options = { once: true, signal: answered.signal }
    signal.addEventListener('abort', () => reject(signal.reason), options)
  })
  try {
    const response = await Promise.race([http.fetch(request), aborted])
    const body = response.body?.pipeThrough(new TransformStream(), { signal })
    return body ? new Response(body, response) : response
  } finally {
    answered.abort()
  }
}

/**
 * Returns the principal (client identity) of the person at this machine. The log records the name with each decision.
 */
export function localPerson(): Principal {
  let name = 'local'
  try {
    name = userInfo().username
  } catch {
    // `userInfo` throws in containers where the user id of the process has no name.
  }
  return { tenant: 'default', name, scopes: ['admin', 'metrics:read'] }
}

/** Returns the folder that contains the store, its keys and the address of the running server. */
export function stateFolder(): string {
  return join(projectFolder(), STATE_FOLDER)
}

/** Returns the path of this folder's database. */
export function storeFile(): string {
  return join(stateFolder(), 'skein.db')
}

/**
 * Returns the folder of the definitions: the named folder, the project if it has `agents/`, or the examples.
 */
export function definitionsFolder(named: string | undefined): string {
  if (named !== undefined) return resolve(named)
  if (!usesExamples(named)) return projectFolder()
  // The published package is JavaScript and contains the examples. The TypeScript sources run in a
  // clone of the repository, which has the examples in `examples/`.
  return import.meta.filename.endsWith('.js')
    ? join(packageFolder(), 'dist', 'example-agents')
    : join(packageFolder(), '..', '..', 'examples', 'agents')
}

/** Whether the examples of this package are used, because no folder is named and the project has no definitions. */
function usesExamples(named: string | undefined): boolean {
  return named === undefined && !existsSync(join(projectFolder(), 'agents'))
}

/** Says that the examples are used; undefined if they are not. */
export function examplesNotice(named: string | undefined): string | undefined {
  if (!usesExamples(named)) return undefined
  return `${projectFolder()} has no agents/, so the examples of Skein are used.`
}

/** Returns the folder of this package. Built code may lie in any folder below it, as the bundler chose. */
function packageFolder(): string {
  return dirname(findPackageJSON(import.meta.url)!)
}

/** The contents of the file that `skein dev` writes, so that other commands find its server. */
export interface ServerFile {
  readonly url: string
  readonly pid: number
}

const file = (): string => join(stateFolder(), 'server.json')

/** Writes the file by which other commands find the server of this process. */
export function writeServerFile(server: ServerFile): void {
  mkdirSync(stateFolder(), { recursive: true, mode: 0o700 })
  writeFileSync(file(), `${JSON.stringify(server)}\n`, { mode: 0o600 })
}

/** Removes the server file, if this process wrote it. */
export function removeServerFile(): void {
  if (readServerFile()?.pid === process.pid) rmSync(file(), { force: true })
}

/** Returns the server of this folder if its process is alive. Whether it responds is checked by `isAnswering`. */
export function readServerFile(): ServerFile | undefined {
  try {
    const read: unknown = JSON.parse(readFileSync(file(), 'utf8'))
    if (!isPlainObject(read)) return undefined
    const { url, pid } = read
    return typeof url === 'string' && typeof pid === 'number' && isAlive(pid)
      ? { url, pid }
      : undefined
  } catch {
    return undefined // no server ran here, or it was killed while it wrote the file
  }
}

function isAlive(pid: number): boolean {
  try {
    return process.kill(pid, 0) // signal 0 only checks whether the process exists
  } catch (error) {
    // EPERM: the process exists, but belongs to another user.
    return (error as NodeJS.ErrnoException).code === 'EPERM'
  }
}

/** Whether a server of Skein responds at the address. */
export async function isAnswering(url: string): Promise<boolean> {
  try {
    const response = await fetch(`${url}/healthz`, { signal: AbortSignal.timeout(2000) })
    return isPlainObject(await response.json()) && response.ok
  } catch {
    return false
  }
}
