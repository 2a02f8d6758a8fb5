/**
 * Streams to many clients that leave and come back at random, and counts what they lost or got twice.
 *
 *     node --expose-gc --conditions=@skein/source bench/http-load.ts 200 60
 *
 * The server runs here; the clients run in a process of their own, so that the event loop and the
 * memory that are measured are the server's.
 */
import { fork } from 'node:child_process'
import { once } from 'node:events'
import { mkdtempSync, rmSync } from 'node:fs'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { monitorEventLoopDelay } from 'node:perf_hooks'
import { fileURLToPath } from 'node:url'
import { Worker } from 'node:worker_threads'
import { says, scripted, waits } from '@skein/ai/testing'
import { createRuntime, defineAgent, definePrompt, type EmbeddedRuntime } from '@skein/runtime'
import { createClient } from '@skein/server/client'
import { serve } from '@skein/server'

export interface LoadOptions {
  readonly clients: number
  readonly seconds: number
  /** Threads that the clients share. Default a quarter of the clients. */
  readonly threads?: number
}

export interface LoadReport {
  readonly clients: number
  readonly threads: number
  readonly seconds: number
  /** Events of logs and pieces of speech that arrived, over all clients. */
  readonly received: number
  readonly reconnects: number
  readonly lost: number
  readonly doubled: number
  readonly stallMaxMs: number
  readonly stallP99Ms: number
  /** The most that the server computed between two turns of its loop: stalls without what others on the machine did. */
  readonly workMaxMs: number
  /** The same of a thread that does nothing: what the machine alone is to blame for. */
  readonly idleStallMaxMs: number
  /** Of the server, in MB: after a fifth of the time, and at the end. */
  readonly heapEarlyMb: number
  readonly heapLateMb: number
}

interface Task {
  readonly url: string
  readonly clients: number
  readonly threadIds: readonly string[]
}

interface Counts {
  readonly received: number
  readonly reconnects: number
  readonly lost: number
  readonly doubled: number
}

const KEY = 'key-of-the-load-test'
const WORDS = 20
const WORD_MS = 50

export async function runLoad({
  clients,
  seconds,
  threads = Math.ceil(clients / 4),
}: LoadOptions): Promise<LoadReport> {
  const folder = mkdtempSync(join(tmpdir(), 'skein-load-'))
  const runtime = await createRuntime({ agents: [talker()], folder, secretKey: new Uint8Array(32) })
  await runtime.start()
  const serving = await serve(runtime, {
    port: 0,
    auth: { keys: [{ key: KEY, tenant: 'load', scopes: ['admin'] }] },
    limits: {
      requestsPerMinute: Infinity,
      requestsPerMinutePerAddress: Infinity,
      maxStreamsPerClient: 5000,
    },
  })
  const threadIds: string[] = []
  for (let i = 0; i < threads; i++)
    threadIds.push((await runtime.threads.create({ agent: 'talker', tenant: 'load' })).id)
  const child = fork(fileURLToPath(import.meta.url), [], {
    execArgv: ['--conditions=@skein/source'],
    env: {
      ...process.env,
      SKEIN_LOAD: JSON.stringify({ url: serving.url, clients, threadIds } satisfies Task),
    },
  })
  const counted = new Promise<Counts>((resolve, reject) => {
    child.on('message', (message) => resolve(message as Counts)) // our own process sends nothing else
    child.on('exit', (code) => reject(new Error(`The clients ended with ${code}.`)))
  })
  const idle = watchIdle()
  const { heapEarlyMb, delay, workMaxMs } = await drive(runtime, threadIds, seconds)
  const idleStallMaxMs = await idle()
  const heapLateMb = heapMb()
  child.send(
    Object.fromEntries(
      await Promise.all(threadIds.map(async (id) => [id, (await runtime.threads.get(id)).seq])),
    ),
  )
  const counts = await counted
  await serving.close({ graceMs: 1000 })
  await runtime.stop()
  rmSync(folder, { recursive: true })
  return {
    clients,
    threads,
    seconds,
    ...counts,
    stallMaxMs: Math.round(delay.max / 1e6),
    stallP99Ms: Math.round(delay.percentile(99) / 1e6),
    workMaxMs,
    idleStallMaxMs,
    heapEarlyMb,
    heapLateMb,
  }
}

/** A thread of its own without work; the returned function ends it and answers its longest stall. */
function watchIdle(): () => Promise<number> {
  const code = `
    const { monitorEventLoopDelay } = require('node:perf_hooks')
    const { parentPort } = require('node:worker_threads')
    const delay = monitorEventLoopDelay({ resolution: 10 })
    delay.enable()
    parentPort.on('message', () => parentPort.postMessage(Math.round(delay.max / 1e6)))`
  const worker = new Worker(code, { eval: true })
  return async () => {
    const answer = once(worker, 'message') as Promise<[number]>
    worker.postMessage('enough')
    const [stallMs] = await answer
    await worker.terminate()
    return stallMs
  }
}

function talker(): ReturnType<typeof defineAgent> {
  const speech = Array.from({ length: WORDS }, (_, i) => [
    says(`word ${i} `),
    waits(WORD_MS),
  ]).flat()
  const prompt = definePrompt({
    name: 'talker',
    prompt: 'Talk.',
    model: scripted(() => speech),
    includeChat: false,
  })
  return defineAgent({ name: 'talker', sideA: { prompt } })
}

/** Keeps all threads talking until the time is up. */
async function drive(
  runtime: EmbeddedRuntime,
  threadIds: readonly string[],
  seconds: number,
): Promise<{
  heapEarlyMb: number
  delay: ReturnType<typeof monitorEventLoopDelay>
  workMaxMs: number
}> {
  const start = Date.now()
  const isOver = (share = 1): boolean => Date.now() - start > seconds * 1000 * share
  const delay = monitorEventLoopDelay({ resolution: 10 })
  let heapEarlyMb = 0
  let work = (): number => 0
  await Promise.all(
    threadIds.map(async (id, index) => {
      while (!isOver()) {
        await runtime.threads.run(id, 'Continue.')
        if (index > 0 || heapEarlyMb > 0 || !isOver(0.2)) continue
        // What starting costs is not what streaming costs.
        heapEarlyMb = heapMb()
        delay.enable()
        work = watchWork()
      }
    }),
  )
  delay.disable()
  return { heapEarlyMb, delay, workMaxMs: work() }
}

/** Processor time of this thread from one turn of its loop to the next; the returned function answers the most. */
function watchWork(): () => number {
  const spent = (): number => {
    const { user, system } = process.threadCpuUsage()
    return (user + system) / 1000
  }
  let last = spent()
  let most = 0
  const timer = setInterval(() => {
    const now = spent()
    most = Math.max(most, now - last)
    last = now
  }, 1)
  return () => {
    clearInterval(timer)
    return Math.round(most)
  }
}

function heapMb(): number {
  globalThis.gc?.()
  return Math.round(process.memoryUsage().heapUsed / 1e5) / 10
}

/** The other process: reads, leaves and comes back until everything is there. */
async function readAll({ url, clients, threadIds }: Task): Promise<Counts> {
  const ends = new Promise<Record<string, number>>((resolve) => {
    process.once('message', (message) => resolve(message as Record<string, number>)) // sent by `runLoad`
  })
  let finals: Record<string, number> | undefined
  void ends.then((known) => (finals = known))
  const counts = { received: 0, reconnects: 0, lost: 0, doubled: 0 }
  const client = createClient({ url, apiKey: KEY })
  const readOne = async (threadId: string): Promise<void> => {
    let after = '0'
    let seq = 0
    while (finals === undefined || seq < finals[threadId]!) {
      const abort = new AbortController()
      const timer = setTimeout(() => abort.abort(), 200 + Math.random() * 3000)
      for await (const { id, event } of client.stream(threadId, { after, signal: abort.signal })) {
        after = id
        counts.received += 1
        if (event.type.endsWith('_delta')) continue
        const number = Math.trunc(Number(id))
        if (number <= seq) counts.doubled += 1
        else counts.lost += number - seq - 1
        seq = Math.max(seq, number)
        if (finals !== undefined && seq >= finals[threadId]!) abort.abort()
      }
      clearTimeout(timer)
      counts.reconnects += 1
    }
  }
  await Promise.all(
    Array.from({ length: clients }, (_, i) => readOne(threadIds[i % threadIds.length]!)),
  )
  return counts
}

const task = process.env['SKEIN_LOAD']
if (task !== undefined && process.send) {
  const counts = await readAll(JSON.parse(task) as Task) // written by `runLoad`
  process.send(counts, () => process.exit(0))
} else if (process.argv[1] === fileURLToPath(import.meta.url)) {
  const [clients = 200, seconds = 60] = process.argv.slice(2).map(Number)
  process.stdout.write(`${JSON.stringify(await runLoad({ clients, seconds }), null, 2)}\n`)
}
