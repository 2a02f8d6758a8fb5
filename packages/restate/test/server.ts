import { type ChildProcess, spawn } from 'node:child_process'
import { once } from 'node:events'
import { existsSync, mkdirSync, mkdtempSync, readFileSync, rmSync, writeFileSync } from 'node:fs'
import { createServer } from 'node:net'
import { join } from 'node:path'
import { installPeers, peersOf } from '../../../scripts/peers.ts'
import { root } from '../../../scripts/workspace.ts'

const PEERS = 'restate'

/** A Restate server of npm that listens on 127.0.0.1 and keeps its data in a folder of its own. */
export interface RestateServer {
  readonly version: string
  readonly ingressUrl: string
  readonly adminUrl: string
  readonly pid: number
  /** Resident memory in bytes, and CPU time in ms so far. */
  usage(): { readonly bytes: number; readonly cpuMs: number }
  /** Ends the process as a crash would. */
  kill9(): Promise<void>
  /** Starts it again on the same ports and data. */
  restart(): Promise<void>
  /** Ends the process, and removes its data. */
  stop(): Promise<void>
}

/** Why the server cannot be started here; undefined if it can. */
export function missingRestate(): string | undefined {
  const { platform, arch } = process
  const known = ['linux x64', 'linux arm64', 'darwin x64', 'darwin arm64']
  return known.includes(`${platform} ${arch}`)
    ? undefined
    : `npm has no Restate server for ${platform} ${arch}`
}

/** The program of the server. Installs it if that was not done yet. */
export async function restateProgram(): Promise<{
  readonly path: string
  readonly version: string
}> {
  const failure = await installPeers(PEERS)
  if (failure !== undefined) throw new Error(failure)
  const peers = peersOf(PEERS)
  const name = `@restatedev/restate-server-${process.platform}-${process.arch}`
  return {
    path: join(peers.folder, 'node_modules', name, 'bin/restate-server'),
    version: peers.version(name),
  }
}

/** Settings of one node of a cluster; without them the server is alone. */
export interface ClusterNode {
  readonly name: string
  /** The port for the other nodes. */
  readonly port: number
  /** The addresses of all nodes. */
  readonly peers: readonly string[]
  readonly isFirst: boolean
}

/** Starts a server. Its telemetry is off, and it may use little memory. */
export async function startRestate(cluster?: ClusterNode): Promise<RestateServer> {
  const { path, version } = await restateProgram()
  const parent = join(root, '.tmp')
  mkdirSync(parent, { recursive: true })
  const folder = mkdtempSync(join(parent, 'restate-'))
  const [ingress = 0, admin = 0, own = 0] = await freePorts(3)
  const node = cluster?.port ?? own
  const file = join(folder, 'restate.toml')
  writeFileSync(file, configuration({ folder, ingress, admin, node, cluster }))
  let process_: ChildProcess | undefined
  const start = async (): Promise<void> => {
    const child = spawn(path, ['--config-file', file, '--no-logo'], {
      stdio: 'ignore',
      cwd: folder,
    })
    process_ = child
    await ready(child, [
      `http://127.0.0.1:${admin}/health`,
      `http://127.0.0.1:${ingress}/restate/health`,
    ])
  }
  const end = async (signal: NodeJS.Signals): Promise<void> => {
    const child = process_
    process_ = undefined
    if (!child || child.exitCode !== null) return
    const ended = once(child, 'exit')
    child.kill(signal)
    const timer = setTimeout(() => child.kill('SIGKILL'), 5_000)
    await ended
    clearTimeout(timer)
  }
  await start()
  return {
    version,
    ingressUrl: `http://127.0.0.1:${ingress}`,
    adminUrl: `http://127.0.0.1:${admin}`,
    get pid() {
      return process_?.pid ?? 0
    },
    usage: () => usageOf(process_?.pid ?? 0),
    kill9: () => end('SIGKILL'),
    restart: start,
    async stop() {
      await end('SIGTERM')
      rmSync(folder, { recursive: true, force: true, maxRetries: 5 })
    },
  }
}

function configuration({
  folder,
  ingress,
  admin,
  node,
  cluster,
}: {
  readonly folder: string
  readonly ingress: number
  readonly admin: number
  readonly node: number
  readonly cluster?: ClusterNode | undefined
}): string {
  const top = [
    `node-name = "${cluster?.name ?? 'test'}"`,
    `cluster-name = "skein-test"`,
    `base-dir = "${join(folder, 'data')}"`,
    `disable-telemetry = true`,
    `listen-mode = "tcp"`,
    `bind-ip = "127.0.0.1"`,
    `bind-port = ${node}`,
    `advertised-host = "127.0.0.1"`,
    `default-num-partitions = ${cluster ? 6 : 4}`,
    `rocksdb-total-memory-size = "128 MiB"`,
    `shutdown-timeout = "5s"`,
    `auto-provision = ${!cluster || cluster.isFirst}`,
    ...(cluster ? ['default-replication = 2'] : []),
  ]
  const tables = [
    `[ingress]\nbind-ip = "127.0.0.1"\nbind-port = ${ingress}`,
    `[admin]\nbind-ip = "127.0.0.1"\nbind-port = ${admin}`,
    ...(cluster
      ? [
          `[metadata-client]\naddresses = [${cluster.peers.map((peer) => `"${peer}"`).join(', ')}]`,
          `[bifrost]\ndefault-provider = "replicated"`,
        ]
      : []),
  ]
  return `${top.join('\n')}\n\n${tables.join('\n\n')}\n`
}

/** Ports that nobody uses at the moment. */
export async function freePorts(count: number): Promise<readonly number[]> {
  const servers = await Promise.all(
    Array.from({ length: count }, async () => {
      const server = createServer()
      server.listen(0, '127.0.0.1')
      await once(server, 'listening')
      return server
    }),
  )
  const ports = servers.map((server) => (server.address() as { port: number }).port)
  for (const server of servers) server.close()
  return ports
}

async function ready(child: ChildProcess, urls: readonly string[]): Promise<void> {
  const end = performance.now() + 60_000
  for (const url of urls)
    for (;;) {
      if (child.exitCode !== null) throw new Error(`restate-server ended with ${child.exitCode}`)
      if (performance.now() > end) throw new Error(`restate-server does not answer at ${url}`)
      const isOk = await fetch(url).then(
        (response) => response.ok,
        () => false,
      )
      if (isOk) break
      await new Promise((resolve) => setTimeout(resolve, 50))
    }
}

function usageOf(pid: number): { readonly bytes: number; readonly cpuMs: number } {
  const file = `/proc/${pid}/stat`
  if (pid === 0 || !existsSync(file)) return { bytes: 0, cpuMs: 0 }
  const fields = readFileSync(file, 'utf8').split(') ')[1]!.split(' ')
  // utime and stime in ticks of 10 ms; rss in pages of 4 KiB: proc(5), counted from the third field.
  return {
    bytes: Number(fields[21]) * 4096,
    cpuMs: (Number(fields[11]) + Number(fields[12])) * 10,
  }
}
