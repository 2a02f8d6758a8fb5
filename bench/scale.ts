/**
 * `node --conditions=@skein/source bench/scale.ts [--write]`: turns per second and CPU per turn of each store
 * and engine, on one machine, with one, two and four nodes. A turn is one message, two answers of a model that
 * takes no time, and one call of a tool. With `--write` the numbers go to bench/scale.json; `--only=SQLite`
 * measures the set-ups whose name has that text, `--nodes=4` those with as many nodes.
 */
import { type ChildProcess, fork } from 'node:child_process'
import { existsSync, mkdtempSync, readFileSync, rmSync, writeFileSync } from 'node:fs'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import pg from 'pg'
import { startPostgres, type TestPostgres } from '../packages/postgres/test/server.ts'
import { startBalancer } from '../packages/restate/test/balancer.ts'
import { freePorts, type RestateServer, startRestate } from '../packages/restate/test/server.ts'
import { startWorker, type Worker, type WorkerOptions } from '../packages/restate/test/workers.ts'
import { root } from '../scripts/workspace.ts'

/** What was measured of one set-up. CPU times are in ms per turn. */
export interface ScalePoint {
  readonly setUp: string
  readonly nodes: number
  /** How many threads were worked on at a time. */
  readonly threads: number
  readonly turnsPerSecond: number
  readonly turnMs: { readonly p50: number; readonly p99: number }
  readonly cpuMs: {
    readonly nodes: number
    readonly postgres: number
    readonly engine: number
    /** The process that sends messages. */
    readonly client: number
  }
  /** Transactions and bytes of the write-ahead log of PostgreSQL, per turn. */
  readonly commits: number
  readonly walBytes: number
  /** How much of the machine was busy with other programs meanwhile, in CPUs. */
  readonly othersCpus: number
}

type Engine = WorkerOptions['engine'] | 'langgraph' | 'dbos'

const kinds: readonly { name: string; engine: Engine }[] = [
  { name: 'PostgreSQL, in process', engine: 'local' },
  { name: 'PostgreSQL, Restate', engine: 'restate' },
  { name: 'PostgreSQL, queue', engine: 'queue' },
  { name: 'LangGraph, PostgreSQL', engine: 'langgraph' },
  { name: 'DBOS, PostgreSQL', engine: 'dbos' },
]
const setUps: readonly { name: string; engine: Engine; isSqlite?: boolean; nodes: number }[] = [
  { name: 'SQLite, in process', engine: 'local', isSqlite: true, nodes: 1 },
  ...kinds.flatMap((kind) => [1, 2, 4].map((nodes) => ({ ...kind, nodes }))),
]

/** Turns that each node runs before anything is measured: in a process that has run fewer, V8 is still compiling. */
const WARM_TURNS = 150

interface Node {
  create(): Promise<string>
  send(threadId: string, text: string): Promise<void>
  cpuMs(): Promise<number>
  stop(): Promise<void>
}

async function main(): Promise<void> {
  const postgres = await startPostgres()
  const restate = await startRestate()
  const only = process.argv.find((argument) => argument.startsWith('--only='))?.slice(7)
  const count = process.argv.find((argument) => argument.startsWith('--nodes='))?.slice(8)
  const points: ScalePoint[] = []
  try {
    for (const setUp of setUps.filter(
      ({ name, nodes }) =>
        (only === undefined || name.includes(only)) && (count ?? String(nodes)) === String(nodes),
    ))
      points.push(...(await measure(setUp, postgres, restate)))
  } finally {
    await Promise.all([postgres.stop(), restate.stop()])
  }
  if (process.argv.includes('--write')) write(points)
}

/** Replaces the points that were measured now, and keeps the others. */
function write(points: readonly ScalePoint[]): void {
  const file = join(root, 'bench/scale.json')
  const keyOf = ({ setUp, nodes, threads }: ScalePoint): string => `${setUp} ${nodes} ${threads}`
  const before = existsSync(file)
    ? (JSON.parse(readFileSync(file, 'utf8')) as readonly ScalePoint[])
    : []
  const all = new Map([...before, ...points].map((point) => [keyOf(point), point]))
  writeFileSync(file, `${JSON.stringify([...all.values()], null, 2)}\n`)
}

/** Measures a set-up with one thread and with many. */
async function measure(
  { name, engine, isSqlite, nodes: count }: (typeof setUps)[number],
  postgres: TestPostgres,
  restate: RestateServer,
): Promise<readonly ScalePoint[]> {
  const folder = mkdtempSync(join(tmpdir(), 'skein-scale-'))
  const database = `scale_${engine}_${count}_${Date.now()}`
  const admin = new pg.Client(postgres.url)
  await admin.connect()
  await admin.query(`CREATE DATABASE ${database}`)
  const databaseUrl = postgres.url.replace(/\/postgres$/, `/${database}`)
  const balancer = await startBalancer()
  const parked = new Map<string, () => void>()
  const heard = (threadId: string): void => parked.get(threadId)?.()
  const nodes: Node[] = []
  for (const port of await freePorts(count)) {
    balancer.add(`http://127.0.0.1:${port}`)
    const { ingressUrl, adminUrl } = restate
    const service = { ingressUrl, adminUrl, address: balancer.url, serviceName: database }
    nodes.push(
      engine === 'langgraph' || engine === 'dbos'
        ? await startOther(`scale-${engine}.ts`, databaseUrl, heard)
        : await startNode({
            engine,
            folder: isSqlite ? folder : undefined,
            databaseUrl: isSqlite ? undefined : databaseUrl,
            restate: engine === 'restate' ? { ...service, listen: { port } } : undefined,
          }),
    )
  }
  async function startNode(options: WorkerOptions): Promise<Worker> {
    return startWorker(options, (report) => {
      if (report.type === 'parked') heard(report.threadId)
      else console.log(report.text)
    })
  }

  const turn = async (node: Node, threadId: string, number: number): Promise<number> => {
    const from = performance.now()
    const done = new Promise<void>((resolve) => parked.set(threadId, resolve))
    await node.send(threadId, `0-${number}`)
    await done
    parked.delete(threadId)
    return performance.now() - from
  }
  const load = async (threads: number, seconds: number): Promise<readonly number[]> => {
    const ids = await Promise.all(
      Array.from({ length: threads }, (_, index) => nodes[index % count]!.create()),
    )
    const end = performance.now() + seconds * 1000
    const all = await Promise.all(
      ids.map(async (id, index) => {
        const times: number[] = []
        for (let number = 0; performance.now() < end; number++)
          times.push(await turn(nodes[index % count]!, id, number))
        return times
      }),
    )
    return all.flat()
  }
  const usage = async () => {
    const own = process.cpuUsage()
    const { rows } = await admin.query<{ commits: string; wal: string }>(
      `SELECT sum(xact_commit) AS commits, pg_current_wal_lsn() - '0/0' AS wal FROM pg_stat_database`,
    )
    return {
      nodes: (await Promise.all(nodes.map((node) => node.cpuMs()))).reduce(
        (sum, one) => sum + one,
        0,
      ),
      postgres: treeCpuMs(postgres.pid()),
      engine: engine === 'restate' ? restate.usage().cpuMs : 0,
      client: (own.user + own.system) / 1000,
      machine: machineCpuMs(),
      at: performance.now(),
      commits: Number(rows[0]!.commits),
      wal: Number(rows[0]!.wal),
    }
  }

  const warm = async (node: Node): Promise<void> => {
    const ids = await Promise.all(Array.from({ length: 8 }, () => node.create()))
    let left = WARM_TURNS
    const talk = async (id: string): Promise<void> => {
      for (let number = 0; left-- > 0; number++) await turn(node, id, number)
    }
    await Promise.all(ids.map(talk))
  }
  await Promise.all(nodes.map(warm))
  const points: ScalePoint[] = []
  for (const threads of [1, 32]) {
    const before = await usage()
    const from = performance.now()
    const times = (await load(threads, 6)).toSorted((a, b) => a - b)
    const seconds = (performance.now() - from) / 1000
    const ended = await usage()
    await new Promise((resolve) => setTimeout(resolve, 1_100)) // statistics of PostgreSQL are up to 1 s late
    const { commits, wal } = await usage()
    const after = { ...ended, commits, wal }
    const per = (key: keyof typeof before): number => (after[key] - before[key]) / times.length
    const own = per('nodes') + per('postgres') + per('engine') + per('client')
    const point: ScalePoint = {
      setUp: name,
      nodes: count,
      threads,
      turnsPerSecond: round(times.length / seconds),
      turnMs: {
        p50: round(times[times.length >> 1]!),
        p99: round(times[Math.floor(times.length * 0.99)]!),
      },
      cpuMs: {
        nodes: round(per('nodes')),
        postgres: isSqlite ? 0 : round(per('postgres')),
        engine: round(per('engine')),
        client: round(per('client')),
      },
      commits: isSqlite ? 0 : round(per('commits')),
      walBytes: isSqlite ? 0 : Math.round(per('wal')),
      othersCpus: round((per('machine') - own) / per('at')),
    }
    points.push(point)
    console.log(JSON.stringify(point))
  }
  await Promise.all(nodes.map((node) => node.stop()))
  await balancer.stop()
  await admin.end()
  rmSync(folder, { recursive: true, force: true })
  return points
}

/** A framework of others on PostgreSQL, in a process of its own. */
async function startOther(
  file: string,
  databaseUrl: string,
  heard: (threadId: string) => void,
): Promise<Node> {
  const child: ChildProcess = fork(join(import.meta.dirname, file), [databaseUrl], {
    execArgv: ['--conditions=@skein/source'],
  })
  const answers = new Map<number, (value: string) => void>()
  await new Promise<void>((resolve, reject) => {
    child.once('exit', () => reject(new Error(`${file} did not start.`)))
    child.on('message', (message: { id?: number; value?: string; parked?: string }) => {
      if (message.parked !== undefined) heard(message.parked)
      else if (message.id === undefined) resolve()
      else answers.get(message.id)?.(message.value ?? '')
    })
  })
  let count = 0
  const ask = (request: object): Promise<string> =>
    new Promise((resolve) => {
      const id = count++
      answers.set(id, resolve)
      child.send({ id, ...request })
    })
  return {
    create: async () => crypto.randomUUID(),
    send: async (threadId, text) => void (await ask({ threadId, text })),
    cpuMs: async () => Number(await ask({})),
    stop: async () => void child.kill(),
  }
}

function round(value: number): number {
  return Math.round(value * 100) / 100
}

/** CPU time of a process and its children in ms, also of children that have ended. */
function treeCpuMs(pid: number): number {
  const fields = readFileSync(`/proc/${pid}/stat`, 'utf8').split(') ')[1]!.split(' ')
  const children = readFileSync(`/proc/${pid}/task/${pid}/children`, 'utf8').trim()
  const own = [11, 12, 13, 14].reduce((sum, index) => sum + Number(fields[index]), 0) * 10
  return children
    .split(' ')
    .filter((child) => child !== '')
    .reduce((sum, child) => sum + treeCpuMs(Number(child)), own)
}

/** CPU time that the whole machine has used, in ms. */
function machineCpuMs(): number {
  const [, user, nice, system, , , irq, soft] = readFileSync('/proc/stat', 'utf8')
    .split('\n')[0]!
    .split(/\s+/)
    .map(Number)
  return (user! + nice! + system! + irq! + soft!) * 10
}

if (process.argv[1] === import.meta.filename) await main()
