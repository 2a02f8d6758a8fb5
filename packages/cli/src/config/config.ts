import { existsSync, readFileSync } from 'node:fs'
import { dirname, isAbsolute, join, resolve } from 'node:path'
import { pathToFileURL } from 'node:url'
import { closest, isPlainObject, messageOf, tryParseJson } from '@skein/base'
import type { RuntimeOptions } from '@skein/runtime'
import type { ApiKey, HttpOptions, jwtAuth, Verify } from '@skein/server'
import { CommandError } from '../terminal/command.ts'
import { envFile, isFromEnvFile, readEnvFile } from './env-file.ts'
import { CONFIG_FILES, projectFolder } from './project-folder.ts'

/**
 * The settings of `skein serve`, and some of `skein dev`. Every setting can also be set by an environment variable,
 * which overrides the file; `docs/deploy.md` lists them. Relative paths start at the folder of the configuration file.
 */
export interface SkeinConfig {
  /** Folder with `agents/`, `prompts/`, `tools/` … Default: the folder of the configuration file. */
  readonly agents?: string
  /** Folder with the definitions of the previous version, for sessions that began with them. */
  readonly previous?: string
  /**
   * `session`: a session continues only with the definitions with which it began. `none`: with those of
   * whichever node continues it. Default: `session` if there are several nodes (`nodeSecret`), else `none`.
   */
  readonly pin?: 'none' | 'session'
  /** Address to listen on. Default `127.0.0.1`. */
  readonly host?: string
  /** Default 4111. */
  readonly port?: number
  /** Put before every path, e.g. `/api`. */
  readonly prefix?: string
  /** `sqlite:<file>` or `postgres://…`. Default `sqlite:.skein/skein.db`. */
  readonly store?: string
  /** Address of the same PostgreSQL without a pooler, for notifications. If absent, a node behind a pooler polls. */
  readonly storeDirect?: string
  /** What starts the work on due threads. `queue` and `restate` need PostgreSQL. Default `local`. */
  readonly engine?: 'local' | 'queue' | 'restate'
  /** Where Restate takes messages, e.g. `http://restate:8080`. */
  readonly restateIngress?: string
  /** The admin address of Restate, at which this process registers itself. */
  readonly restateAdmin?: string
  /** The address at which Restate reaches this process. */
  readonly restateAddress?: string
  /** The port on which this process listens for Restate. Default 9080. */
  readonly restatePort?: number
  /** The key that encrypts stored secrets: base64 of 32 bytes. Older keys may follow, separated by commas. */
  readonly secretKey?: string
  readonly secretKeyFile?: string
  /** Keys that sign approvals and audit logs: the file or folder that `skein keys` made. */
  readonly governanceKeys?: string
  /** API keys, and what the holder of each may do. */
  readonly authKeys?: readonly ApiKey[]
  /** A JSON file with `authKeys`. */
  readonly authKeysFile?: string
  /** Accepts the signed tokens (JWT) of one issuer. */
  readonly jwt?: Parameters<typeof jwtAuth>[0]
  /**
   * Who sends a request, e.g. by the token or the cookie of a user of your own; null for a client that you do not know.
   * API keys and `jwt` are tried before. `skein dev` asks clients for nothing, and `serve` refuses `'none'`.
   */
  readonly auth?: Verify | 'none'
  /** Host names under which clients reach the server. */
  readonly allowedHosts?: readonly string[]
  /** Origins of pages that may call the server from a browser, e.g. `https://app.example`. */
  readonly origins?: readonly string[]
  /** How many trusted proxies are in front of the server; client addresses are then read from `x-forwarded-for`. */
  readonly proxies?: number
  readonly limits?: RuntimeOptions['limits']
  readonly httpLimits?: HttpOptions['limits']
  /** How many threads work at the same time. Default 128. */
  readonly maxConcurrent?: number
  readonly spending?: RuntimeOptions['spending']
  readonly retention?: RuntimeOptions['retention']
  /** `debug`, `info`, `warn`, `error` or `silent`. Default `info`. */
  readonly logLevel?: string
  /** `json` (default) or `text`. */
  readonly logFormat?: string
  /** How many seconds running work may continue after a signal to stop. Default 20. */
  readonly drainSeconds?: number
  /** The address at which other nodes reach this one, e.g. `http://10.0.0.7:4111`. */
  readonly nodeAddress?: string
  /** A secret of at least 32 characters, with which all nodes authenticate to one another. */
  readonly nodeSecret?: string
  readonly nodeSecretFile?: string
  /** Names this installation in audit logs and approvals. Default `skein`. */
  readonly id?: string
}

/** Checks the types of a configuration in an editor, and returns it. */
export function defineConfig(config: SkeinConfig): SkeinConfig {
  return config
}

/**
 * How the value of a setting is read: `path` (a folder) and `file` are made absolute, `list` is split at commas, and a
 * `function` is only in a file that is a program.
 */
type Kind = 'text' | 'path' | 'file' | 'number' | 'list' | 'json' | 'store' | 'function'

/** Every setting: how its environment variable is read, and its description in the table of the documentation. */
export const SETTINGS: { readonly [Name in keyof SkeinConfig]-?: readonly [Kind, string] } = {
  agents: ['path', 'folder with `agents/`, `prompts/`, `tools/` … Default: that of the file'],
  previous: ['path', 'folder with the definitions of the version before'],
  pin: ['text', '`session` (default of several nodes): sessions keep their definitions. Or `none`'],
  host: ['text', 'address to listen on. Default `127.0.0.1`'],
  port: ['number', 'default 4111'],
  prefix: ['text', 'put before every path, e.g. `/api`'],
  store: ['store', '`sqlite:<file>` or `postgres://…`. Default `sqlite:.skein/skein.db`'],
  storeDirect: ['text', 'the same PostgreSQL without a pooler, for notifications'],
  engine: ['text', '`local` (default), `queue` or `restate`'],
  restateIngress: ['text', 'where Restate takes messages'],
  restateAdmin: ['text', 'where this worker registers itself at Restate'],
  restateAddress: ['text', 'the address at which Restate reaches this worker'],
  restatePort: ['number', 'the port on which this worker listens for Restate. Default 9080'],
  secretKey: ['text', 'base64 of 32 bytes; earlier keys after commas. Or the file:'],
  secretKeyFile: ['file', 'file with the key of stored secrets'],
  governanceKeys: ['file', 'file or folder with the keys that sign approvals and audit logs'],
  authKeys: ['json', 'list of API keys: `sha256` or `key`, `tenant`, `scopes`, `user?`, `name?`'],
  authKeysFile: ['file', 'JSON file with that list'],
  jwt: ['json', '`{ jwks, issuer, audience, tenant?, claims?, scopes? }`'],
  auth: ['function', '`(request) => ({ tenant, user, scopes })`, or null. `none` is refused'],
  allowedHosts: ['list', 'host names under which clients reach the server'],
  origins: ['list', 'origins of pages that may call the server'],
  proxies: ['number', 'how many proxies are in front of the server. Default 0'],
  limits: ['json', 'limits of the runtime (SECURITY.md)'],
  httpLimits: ['json', 'limits of requests and streams (SECURITY.md)'],
  maxConcurrent: ['number', 'threads that work at the same time. Default 128'],
  spending: ['json', 'list of spending rules'],
  retention: ['json', '`{ rules, everyMs? }`'],
  logLevel: ['text', '`debug`, `info` (default), `warn`, `error` or `silent`'],
  logFormat: ['text', '`json` (default) or `text`'],
  drainSeconds: ['number', 'how long running work may continue after a signal. Default 20'],
  nodeAddress: ['text', 'the address at which other nodes reach this one'],
  nodeSecret: ['text', 'a secret that all nodes share. Or the file:'],
  nodeSecretFile: ['file', 'file with that secret'],
  id: ['text', 'names this installation in audit logs. Default `skein`'],
}

/** Returns the environment variable of a setting: `SKEIN_SECRET_KEY` for `secretKey`. */
export function variableOf(setting: string): string {
  return `SKEIN_${setting.replace(/[A-Z]/g, (letter) => `_${letter}`).toUpperCase()}`
}

/** Variables of other commands. */
const OTHER_VARIABLES: ReadonlySet<string> = new Set(['SKEIN_URL', 'SKEIN_KEY'])

/** One thing that is wrong with a setting. */
export interface ConfigProblem {
  readonly setting: string
  readonly message: string
}

/** A configuration with its origin. */
export interface LoadedConfig {
  readonly config: SkeinConfig
  /** The file that was read; undefined if there is none. */
  readonly file: string | undefined
  /** Settings and variables that cannot be read. */
  readonly problems: readonly ConfigProblem[]
  /** Environment variables that begin with `SKEIN_` but that no command reads. */
  readonly unknownVariables: readonly string[]
}

/**
 * Reads `.env` of the project, the named configuration file or that of the project, which may use variables of `.env`,
 * and the environment. `overrides` are variables that replace those of the environment.
 */
export async function loadConfig(
  named: string | undefined,
  overrides: NodeJS.Dict<string> = {},
): Promise<LoadedConfig> {
  readEnvFile()
  const env = { ...process.env, ...overrides }
  const file =
    named === undefined
      ? CONFIG_FILES.map((name) => join(projectFolder(), name)).find((path) => existsSync(path))
      : resolve(named)
  const problems: ConfigProblem[] = []
  const folder = file === undefined ? resolve('.') : dirname(file)
  const written = file === undefined ? {} : await readConfigFile(file)
  const known = Object.keys(SETTINGS) as (keyof SkeinConfig)[]
  const config: Record<string, unknown> = {}
  for (const [name, value] of Object.entries(written)) {
    if (!Object.hasOwn(SETTINGS, name)) {
      const meant = closest(name, known)
      const hint = meant === undefined ? '' : ` Did you mean ${meant}?`
      problems.push({ setting: name, message: `is not a setting.${hint}` })
    } else if (value !== undefined) config[name] = value
  }
  for (const name of known) {
    const given = env[variableOf(name)]
    if (given === undefined || given === '') continue
    const value = readVariable(SETTINGS[name][0], given)
    if (value === undefined)
      problems.push({ setting: name, message: wrongVariable(name, SETTINGS[name][0], given) })
    else config[name] = value
  }
  for (const name of known) {
    const problem = typeProblem(name, config[name])
    if (problem !== undefined) {
      problems.push({ setting: name, message: problem })
      delete config[name]
    } else {
      const variable = variableOf(name)
      const isOfFile = !(variable in overrides) && isFromEnvFile(variable)
      const here = isOfFile ? dirname(envFile()) : resolve('.')
      config[name] = placed(name, config[name], isSet(env, name) ? here : folder)
    }
  }
  const variables = new Set(known.map(variableOf))
  const unknownVariables = Object.keys(env).filter(
    (name) =>
      name.startsWith('SKEIN_') &&
      !variables.has(name) &&
      !OTHER_VARIABLES.has(name) &&
      // Kubernetes sets such variables by itself if a service is named `skein`.
      !/^SKEIN_(?:SERVICE_|PORT_)/.test(name),
  )
  // The loop above has checked the types of all settings.
  return { config: config as SkeinConfig, file, problems, unknownVariables }
}

async function readConfigFile(file: string): Promise<Readonly<Record<string, unknown>>> {
  if (!existsSync(file))
    throw new CommandError(`There is no configuration ${file}.`, {
      code: 'CONFIG_NOT_FOUND',
      hint: 'Name a file that exports a configuration, or leave out --config.',
    })
  let value: unknown
  try {
    if (file.endsWith('.json')) value = JSON.parse(readFileSync(file, 'utf8'))
    else value = ((await import(pathToFileURL(file).href)) as { default?: unknown }).default
  } catch (cause) {
    // The message of a JSON error quotes the text of the file, which may contain secrets, so it is not shown.
    const why =
      cause instanceof SyntaxError && file.endsWith('.json') ? 'not JSON' : messageOf(cause)
    throw new CommandError(`The configuration ${file} cannot be read: ${why}.`, {
      code: 'CONFIG_UNREADABLE',
      hint: 'A .ts or .js file has `export default defineConfig({ … })`, a .json file an object.',
    })
  }
  if (isPlainObject(value)) return value
  throw new CommandError(`The configuration ${file} has no default export that is an object.`, {
    code: 'CONFIG_UNREADABLE',
    hint: "Write: import { defineConfig } from 'skein'; export default defineConfig({ … })",
  })
}

function isSet(env: NodeJS.ProcessEnv, name: string): boolean {
  return (env[variableOf(name)] ?? '') !== ''
}

function readVariable(kind: Kind, text: string): unknown {
  switch (kind) {
    case 'number':
      return /^\d+$/.test(text.trim()) ? Number(text) : undefined
    case 'list':
      return text
        .split(',')
        .map((part) => part.trim())
        .filter((part) => part !== '')
    case 'json':
      return tryParseJson(text)
    default:
      return text
  }
}

function wrongVariable(name: string, kind: Kind, text: string): string {
  const variable = variableOf(name)
  if (name === 'port' && text.startsWith('tcp://'))
    return `${variable} was set by Kubernetes for a service called skein; set enableServiceLinks: false in the pod.`
  return kind === 'number' ? `${variable} is not a whole number.` : `${variable} is not JSON.`
}

function typeProblem(name: keyof SkeinConfig, value: unknown): string | undefined {
  if (value === undefined) return undefined
  switch (SETTINGS[name][0]) {
    case 'number':
      return Number.isInteger(value) && Number(value) >= 0 ? undefined : 'is not a whole number.'
    case 'list':
      return isList(value, 'string') ? undefined : 'is not a list of strings.'
    case 'json': {
      const isArray = name === 'authKeys' || name === 'spending'
      if (isArray) return isList(value, 'object') ? undefined : 'is not a list of objects.'
      return isPlainObject(value) ? undefined : 'is not an object.'
    }
    case 'function':
      return typeof value === 'function' || typeof value === 'string'
        ? undefined
        : 'is not a function.'
    default:
      return typeof value === 'string' ? undefined : 'is not a string.'
  }
}

function isList(value: unknown, of: 'string' | 'object'): boolean {
  return Array.isArray(value) && value.every((one) => typeof one === of && one !== null)
}

/**
 * Makes a path absolute. It starts at the folder of the file that names it, the configuration or `.env`; a path in a
 * variable of the environment starts at the current folder.
 */
function placed(name: keyof SkeinConfig, value: unknown, base: string): unknown {
  if (typeof value !== 'string') return value
  const absolute = (path: string): string => (isAbsolute(path) ? path : join(base, path))
  switch (SETTINGS[name][0]) {
    case 'path':
    case 'file':
      return absolute(value)
    case 'store':
      return value.startsWith('sqlite:') ? `sqlite:${absolute(value.slice(7))}` : value
    default:
      return value
  }
}
