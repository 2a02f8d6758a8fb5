import { existsSync, readFileSync, statSync } from 'node:fs'
import { dirname, join, resolve } from 'node:path'
import { closest, decodeBase64, isPlainObject, tryParseJson } from '@skein/base'
import type { RuntimeLimits } from '@skein/runtime'
import type { ApiKey, HttpOptions } from '@skein/server'
import type { ConfigProblem, SkeinConfig } from './config.ts'
import { projectFolder, STATE_FOLDER } from './project-folder.ts'
import { LOG_LEVELS } from '../terminal/command.ts'

/** The settings with which `serve` runs, after every setting was found safe. */
export interface SafeSettings {
  readonly config: SkeinConfig
  readonly host: string
  readonly port: number
  readonly store: StoreAddress
  readonly engine: 'local' | 'queue' | 'restate'
  readonly secretKey: string
  readonly oldSecretKeys: readonly string[]
  readonly authKeys: readonly ApiKey[]
  readonly nodeSecret: string | undefined
}

/** Where a store is. */
export type StoreAddress =
  | { readonly type: 'sqlite'; readonly path: string }
  | { readonly type: 'postgres'; readonly connectionString: string }

/** Reads the address of a store; undefined if the text is no such address. */
export function storeAddress(text: string): StoreAddress | undefined {
  if (/^postgres(?:ql)?:\/\//.test(text)) return { type: 'postgres', connectionString: text }
  const path = text.startsWith('sqlite:') ? text.slice('sqlite:'.length) : undefined
  return path === undefined || path === '' ? undefined : { type: 'sqlite', path: resolve(path) }
}

/** Returns the address without its password, for messages. */
export function shownAddress(address: StoreAddress): string {
  if (address.type === 'sqlite') return address.path
  const url = URL.parse(address.connectionString)
  return url ? `postgres://${url.host}${url.pathname}` : 'postgres://…'
}

/**
 * Checks whether a configuration is safe for production. Returns the settings and the problems found; the
 * server must not start if there are any.
 */
export function checkSettings(
  config: SkeinConfig,
  env: NodeJS.ProcessEnv = process.env,
): { readonly settings: SafeSettings; readonly problems: readonly ConfigProblem[] } {
  const problems: ConfigProblem[] = []
  const refuse = (setting: string, message: string): void =>
    void problems.push({ setting, message })
  const host = config.host ?? '127.0.0.1'
  const port = config.port ?? 4111
  if (port > 65_535) refuse('port', 'is above 65535.')
  checkFolders(config, refuse)
  checkReach(config, host, refuse)
  const authKeys = checkAuth(config, refuse)
  const { secretKey, oldSecretKeys } = checkSecretKey(config, refuse)
  checkGovernanceKeys(config, refuse)
  const store = checkStore(config, refuse)
  const engine = checkEngine(config, store, refuse)
  const nodeSecret = checkNodes(config, store, refuse)
  checkLimits(config, refuse)
  checkProcess(env, refuse)
  return {
    settings: {
      config,
      host,
      port,
      store,
      engine,
      secretKey,
      oldSecretKeys,
      authKeys,
      nodeSecret,
    },
    problems,
  }
}

type Refuse = (setting: string, message: string) => void

function checkFolders(
  { agents = projectFolder(), previous, pin = 'none' }: SkeinConfig,
  refuse: Refuse,
): void {
  if (pin !== 'none' && pin !== 'session') refuse('pin', `"${pin}" is neither none nor session.`)
  if (!existsSync(join(agents, 'agents')))
    refuse('agents', `The folder ${agents} has no agents/; the examples are not served to others.`)
  if (previous === undefined) return
  if (!existsSync(join(previous, 'agents')))
    refuse('previous', `The folder ${previous} has no agents/.`)
  if (previous === agents) refuse('previous', 'is the same folder as agents.')
}

/** Checks the settings that decide from where the server can be reached: host names, origins of pages, proxies. */
function checkReach(config: SkeinConfig, host: string, refuse: Refuse): void {
  const { allowedHosts = [], origins = [], prefix, proxies = 0 } = config
  if (allowedHosts.includes('*'))
    refuse(
      'allowedHosts',
      'A server that answers to any name can be attacked by pages through DNS rebinding; name the hosts.',
    )
  if (!isLoopbackHost(host) && allowedHosts.length === 0)
    refuse(
      'allowedHosts',
      `is empty, so no client of another machine gets an answer from ${host}; name the hosts that clients use.`,
    )
  for (const name of allowedHosts)
    if (/[/\s]|:\/\//.test(name)) refuse('allowedHosts', `"${name}" is not a host name.`)
  for (const origin of origins) {
    if (origin === '*' || origin.includes('*'))
      refuse('origins', `"${origin}" lets every page of the web call the server; name the origins.`)
    else if (URL.parse(origin)?.origin !== origin)
      refuse('origins', `"${origin}" is not an origin; write it as https://app.example.`)
    else if (!origin.startsWith('https://'))
      refuse(
        'origins',
        `"${origin}" is not https, so anyone on the network path can change that page.`,
      )
  }
  if (prefix !== undefined && !/^(?:\/[\w.~-]+)+$/.test(prefix))
    refuse('prefix', `"${prefix}" is not a path such as /api.`)
  if (proxies > 8) refuse('proxies', 'is above 8.')
}

function isLoopbackHost(host: string): boolean {
  return host === 'localhost' || host === '::1' || /^127(?:\.\d{1,3}){3}$/.test(host)
}

const SCOPES: ReadonlySet<string> = new Set([
  'threads:read',
  'threads:write',
  'threads:all',
  'approvals:write',
  'logs:read',
  'env:write',
  'metrics:read',
  'admin',
])

function checkAuth(config: SkeinConfig, refuse: Refuse): readonly ApiKey[] {
  const { auth, authKeys = [], authKeysFile, jwt } = config
  const isFunction = typeof auth === 'function'
  if (auth === 'none')
    refuse('auth', '"none" lets in anyone who can reach the port; that is for `skein dev`.')
  else if (auth !== undefined && !isFunction)
    refuse('auth', 'is not a function; it takes a request and returns its user, or null.')
  const text = secretFile('authKeysFile', authKeysFile, refuse)
  const read = text === undefined ? [] : tryParseJson(text)
  const isList = Array.isArray(read) && read.every((one) => isPlainObject(one))
  if (!isList) refuse('authKeysFile', 'is not a JSON list of keys.')
  // The fields of each key are checked below, so the cast is safe.
  const keys = [...authKeys, ...(isList ? (read as unknown[] as ApiKey[]) : [])]
  if (keys.length === 0 && !jwt && authKeysFile === undefined && !isFunction)
    refuse(
      'auth',
      'Clients cannot be distinguished: set authKeys, authKeysFile or jwt, or auth to a function.',
    )
  for (const [index, key] of keys.entries()) {
    const name = `authKeys[${index}]`
    const { tenant, scopes } = key as { tenant?: unknown; scopes?: unknown }
    if (typeof tenant !== 'string' || tenant === '') refuse(name, 'has no tenant.')
    if (!Array.isArray(scopes) || scopes.length === 0) refuse(name, 'has no scopes.')
    else
      for (const scope of scopes)
        if (!SCOPES.has(String(scope))) refuse(name, `has the unknown scope "${String(scope)}".`)
    if ('key' in key) {
      if (String(key.key).length < 24)
        refuse(name, 'is shorter than 24 characters; make one with: openssl rand -base64 32')
    } else if (!/^[0-9a-f]{64}$/i.test(String(key.sha256)))
      refuse(name, 'has neither a key nor a sha256 of 64 hex digits.')
  }
  if (jwt) checkJwt(jwt, refuse)
  return keys
}

function checkJwt(jwt: NonNullable<SkeinConfig['jwt']>, refuse: Refuse): void {
  const { jwks, issuer, audience } = jwt as { [Name in keyof typeof jwt]?: unknown }
  for (const [name, value] of Object.entries({ issuer, audience }))
    if (typeof value !== 'string' || value === '')
      refuse(`jwt.${name}`, 'is missing; without it tokens for others would be accepted.')
  if (typeof jwks === 'string') {
    const url = URL.parse(jwks)
    if (!url) refuse('jwt.jwks', 'is not an address.')
    else if (url.protocol !== 'https:' && !isLoopbackHost(url.hostname))
      refuse(
        'jwt.jwks',
        'is not https, so anyone on the network path can give the server other keys.',
      )
  } else if (!isPlainObject(jwks)) refuse('jwt.jwks', 'is missing.')
}

function checkSecretKey(
  config: SkeinConfig,
  refuse: Refuse,
): Pick<SafeSettings, 'secretKey' | 'oldSecretKeys'> {
  const text = config.secretKey ?? secretFile('secretKeyFile', config.secretKeyFile, refuse) ?? ''
  const [secretKey = '', ...oldSecretKeys] = text
    .split(',')
    .map((key) => key.trim())
    .filter((key) => key !== '')
  if (secretKey === '') {
    if (config.secretKeyFile === undefined)
      refuse(
        'secretKey',
        'is missing, so stored secrets would be encrypted with a key that is stored next to them; make one with: openssl rand -base64 32',
      )
  } else
    for (const key of [secretKey, ...oldSecretKeys]) {
      const bytes = bytesOf(key)
      if (bytes?.length !== 32)
        refuse('secretKey', 'is not base64 of 32 bytes; make one with: openssl rand -base64 32')
      else if (new Set(bytes).size < 8)
        refuse('secretKey', 'is a key of a test: nearly all of its bytes are the same.')
    }
  return { secretKey, oldSecretKeys }
}

function bytesOf(base64: string): Uint8Array | undefined {
  try {
    return decodeBase64(base64)
  } catch {
    return undefined
  }
}

/** The names of the key files that `skein dev` and the runtime create in a folder. */
const KEY_FILES = ['approvals.key.json', 'audit-log.key.json']

function checkGovernanceKeys({ governanceKeys: path, store }: SkeinConfig, refuse: Refuse): void {
  if (path === undefined)
    return refuse(
      'governanceKeys',
      'is missing, so approvals and audit logs would be signed with keys of development; make some with: skein keys <file>',
    )
  const isFolder = statSync(path, { throwIfNoEntry: false })?.isDirectory() === true
  const address = storeAddress(store ?? defaultStore())
  if (isFolder && address?.type === 'sqlite' && path === join(dirname(address.path), 'keys'))
    refuse(
      'governanceKeys',
      `${path} has keys of development, which \`skein dev\` made next to the store.`,
    )
  if (isFolder) for (const name of KEY_FILES) secretFile('governanceKeys', join(path, name), refuse)
  else {
    const text = secretFile('governanceKeys', path, refuse)
    const keys = text === undefined ? undefined : tryParseJson(text)
    if (text !== undefined && !(isPlainObject(keys) && 'approvals' in keys && 'log' in keys))
      refuse('governanceKeys', `${path} does not hold the keys "approvals" and "log".`)
  }
}

/** Reads a file with a secret. Refuses a file that does not exist or that every user of the machine may read. */
function secretFile(setting: string, path: string | undefined, refuse: Refuse): string | undefined {
  if (path === undefined) return undefined
  try {
    const { mode } = statSync(path)
    const isOpen = process.platform !== 'win32' && (mode & 0o007) !== 0
    if (isOpen)
      refuse(
        setting,
        `${path} can be read by every user of this machine (mode ${(mode & 0o777).toString(8)}): chmod 600 it, and change the key if others may have seen it.`,
      )
    return readFileSync(path, 'utf8').trim()
  } catch (error) {
    const { code } = error as NodeJS.ErrnoException
    refuse(setting, `${path} cannot be read (${code ?? 'unknown error'}).`)
    return undefined
  }
}

function defaultStore(): string {
  return `sqlite:${join(projectFolder(), STATE_FOLDER, 'skein.db')}`
}

function checkStore(config: SkeinConfig, refuse: Refuse): StoreAddress {
  const address = storeAddress(config.store ?? defaultStore())
  if (!address) {
    refuse('store', 'is neither sqlite:<file> nor postgres://….')
    return { type: 'sqlite', path: '' }
  }
  if (address.type === 'sqlite') {
    const mode = statSync(address.path, { throwIfNoEntry: false })?.mode ?? 0
    if (process.platform !== 'win32' && (mode & 0o007) !== 0)
      refuse('store', `${address.path} can be read by every user of this machine: chmod 600 it.`)
    return address
  }
  for (const [setting, text] of [
    ['store', address.connectionString],
    ['storeDirect', config.storeDirect],
  ] as const) {
    if (text === undefined) continue
    const url = URL.parse(text)
    if (!url) refuse(setting, 'is not an address such as postgres://user@host/database.')
    else if (!isLoopbackHost(url.hostname) && !url.searchParams.has('sslmode'))
      refuse(
        setting,
        'does not say whether the connection to another machine is encrypted: add ?sslmode=verify-full, or ?sslmode=disable on a private network.',
      )
  }
  return address
}

function checkEngine(
  config: SkeinConfig,
  store: StoreAddress,
  refuse: Refuse,
): SafeSettings['engine'] {
  const { engine = 'local', restateIngress, restateAdmin, restateAddress } = config
  if (engine !== 'local' && engine !== 'queue' && engine !== 'restate') {
    refuse('engine', `"${String(engine)}" is not one of local, queue, restate.`)
    return 'local'
  }
  if (engine !== 'local' && store.type === 'sqlite')
    refuse('engine', `${engine} needs PostgreSQL; one process owns a SQLite file, so use local.`)
  if (engine === 'restate')
    for (const [setting, value] of Object.entries({
      restateIngress,
      restateAddress,
      restateAdmin,
    })) {
      if (value === undefined && setting !== 'restateAdmin')
        refuse(setting, 'is missing; the engine restate needs it.')
      if (value !== undefined && !URL.canParse(value)) refuse(setting, 'is not an address.')
    }
  return engine
}

function checkNodes(config: SkeinConfig, store: StoreAddress, refuse: Refuse): string | undefined {
  const { nodeAddress, nodeSecretFile } = config
  const secret = config.nodeSecret ?? secretFile('nodeSecretFile', nodeSecretFile, refuse)
  if (nodeAddress !== undefined) {
    const url = URL.parse(nodeAddress.replace('{hostname}', 'node'))
    if (!url || !/^https?:$/.test(url.protocol))
      refuse('nodeAddress', 'is not an address such as http://10.0.0.7:4111.')
    if (secret === undefined && nodeSecretFile === undefined)
      refuse('nodeSecret', 'is missing, so nodes could not tell one another from other clients.')
  }
  if (secret !== undefined && secret.length < 32)
    refuse('nodeSecret', 'is shorter than 32 characters; make one with: openssl rand -base64 32')
  if ((nodeAddress ?? secret) !== undefined && store.type === 'sqlite')
    refuse('nodeAddress', 'Several nodes need PostgreSQL; one process owns a SQLite file.')
  return secret
}

/** The names of all limits that may be set; the compiler checks that none is missing. */
const LIMITS: Readonly<Record<keyof RuntimeLimits, true>> = {
  modelAttempts: true,
  modelBackoffMs: true,
  modelIdleMs: true,
  modelMs: true,
  drainAttempts: true,
  leaseMs: true,
  depth: true,
  sameErrors: true,
  maxSteps: true,
  maxHandoffs: true,
  hookTimeoutMs: true,
  maxFileBytes: true,
  maxImageBytes: true,
  maxMediaBytes: true,
  maxMediaFiles: true,
  maxMessageBytes: true,
  maxToolCalls: true,
  maxToolResultBytes: true,
  stopGraceMs: true,
  interruptTtlMs: true,
  variablesTtlMs: true,
  loopBlockedMs: true,
}
const HTTP_LIMITS: Readonly<Record<keyof NonNullable<HttpOptions['limits']>, true>> = {
  maxBodyBytes: true,
  maxFileBytes: true,
  maxImportBytes: true,
  maxJsonDepth: true,
  maxUrlLength: true,
  bodyTimeoutMs: true,
  requestsPerMinute: true,
  requestsPerMinutePerAddress: true,
  maxStreams: true,
  maxStreamsPerClient: true,
  streamBufferBytes: true,
  heartbeatMs: true,
  maxTreeThreads: true,
}

function checkLimits(config: SkeinConfig, refuse: Refuse): void {
  for (const [setting, known] of [
    ['limits', LIMITS],
    ['httpLimits', HTTP_LIMITS],
  ] as const)
    for (const [name, value] of Object.entries(config[setting] ?? {})) {
      const place = `${setting}.${name}`
      if (!Object.hasOwn(known, name)) {
        const meant = closest(name, Object.keys(known))
        refuse(place, `is not a limit.${meant === undefined ? '' : ` Did you mean ${meant}?`}`)
      } else if (typeof value !== 'number' || !(value > 0))
        refuse(place, 'is not a number above 0.')
    }
  const { logLevel = 'info', logFormat = 'json', drainSeconds = 0, maxConcurrent = 1 } = config
  if (!LOG_LEVELS.some((one) => one === logLevel))
    refuse('logLevel', `"${logLevel}" is not one of ${LOG_LEVELS.join(', ')}.`)
  if (logFormat !== 'json' && logFormat !== 'text')
    refuse('logFormat', `"${logFormat}" is neither json nor text.`)
  if (drainSeconds > 3600) refuse('drainSeconds', 'is above 3600.')
  if (maxConcurrent < 1) refuse('maxConcurrent', 'is below 1.')
}

/** Checks how the process itself was started. */
function checkProcess(env: NodeJS.ProcessEnv, refuse: Refuse): void {
  if (env['NODE_TLS_REJECT_UNAUTHORIZED'] === '0')
    refuse('NODE_TLS_REJECT_UNAUTHORIZED', 'is 0, so keys are sent to anyone who answers.')
  const flags = [...process.execArgv, ...(env['NODE_OPTIONS'] ?? '').split(/\s+/)]
  if (flags.some((flag) => flag.startsWith('--inspect')))
    refuse('--inspect', 'lets anyone who can reach that port run code in this process.')
}
