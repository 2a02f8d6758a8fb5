import { connect } from 'node:net'
import { seededRandom, type Random } from '@skein/base'
import { createClient, type Client } from '@skein/server/client'
import { KEY } from './protocol.ts'

/** How long one job of the load may take before it counts as failed. */
const JOB_MS = 90_000
/** Concurrent jobs; the load leaves out a job rather than pile them up. */
const MOST_AT_ONCE = 64
const THREADS = 150
/** A thread is left after this many turns: removed, erased, or forgotten in the store. */
const TURNS = 60

interface Talk {
  readonly id: string
  turns: number
}

/** What was done, and what went wrong. */
export interface LoadReport {
  readonly done: Readonly<Record<string, number>>
  readonly failures: readonly string[]
  readonly leftOut: number
}

export interface Load {
  readonly report: () => LoadReport
  /** Begins no more jobs and waits for those that run; `resume` continues. */
  rest(): Promise<void>
  resume(): void
}

type Job = (load: Context) => Promise<void>

interface Context {
  readonly url: string
  readonly client: Client
  readonly random: Random
  readonly threads: ThreadPool
  readonly slowMs: number
}

/** Jobs with their share of the load. */
const JOBS: Readonly<Record<string, readonly [number, Job]>> = {
  turn: [30, turn],
  stream: [14, stream],
  'tool call': [8, (load) => said(load, 'note this', 'That is done.')],
  '/v1': [14, compatible],
  'abort of a run': [6, abortRun],
  'abort of a /v1 stream': [4, abortCompatible],
  approval: [7, approve],
  child: [5, (load) => said(load, 'work', 'That is done.')],
  timer: [4, timer],
  chat: [4, chat],
  file: [3, file],
  'slow reader': [1, slowReader],
}

export interface LoadOptions {
  /** Jobs per second. */
  readonly rate: number
  readonly seed: number
  /** The longest time that a slow reader reads nothing. */
  readonly slowMs: number
}

/** Begins jobs at a fixed rate, in an order that the seed fixes. */
export function startLoad(url: string, { rate, seed, slowMs }: LoadOptions): Load {
  const random = seededRandom(seed)
  const client = createClient({ url, apiKey: KEY })
  const context: Context = { url, client, random, threads: new ThreadPool(client, random), slowMs }
  const done: Record<string, number> = {}
  const failures: string[] = []
  const running = new Set<Promise<void>>()
  let leftOut = 0
  const begin = (): void => {
    if (running.size >= MOST_AT_ONCE) return void (leftOut += 1)
    const [name, job] = pick(random)
    const work = withLimit(job(context))
      .then(() => void (done[name] = (done[name] ?? 0) + 1))
      .catch((error: unknown) => void failures.push(`${name}: ${String(error)}`))
      .finally(() => running.delete(work))
    running.add(work)
  }
  let timer: NodeJS.Timeout | undefined
  const resume = (): void => void (timer = setInterval(begin, 1000 / rate))
  resume()
  return {
    report: () => ({ done, failures, leftOut }),
    async rest() {
      clearInterval(timer)
      await Promise.all(running)
    },
    resume,
  }
}

function pick(random: Random): readonly [string, Job] {
  const all = Object.entries(JOBS)
  let left = random() * all.reduce((sum, [, [share]]) => sum + share, 0)
  for (const [name, [share, job]] of all) if ((left -= share) < 0) return [name, job]
  throw new Error('The shares do not add up.')
}

function withLimit(work: Promise<void>): Promise<void> {
  let timer: NodeJS.Timeout
  const late = new Promise<never>((_, reject) => {
    timer = setTimeout(() => reject(new Error(`took more than ${JOB_MS / 1000} s`)), JOB_MS)
  })
  return Promise.race([work, late]).finally(() => clearTimeout(timer))
}

/** Threads that are talked to, by one job at a time. */
class ThreadPool {
  readonly #client: Client
  readonly #random: Random
  readonly #free: Talk[] = []
  #count = 0

  constructor(client: Client, random: Random) {
    this.#client = client
    this.#random = random
  }

  async with(work: (threadId: string) => Promise<void>): Promise<void> {
    const talk = await this.#take()
    await work(talk.id)
    talk.turns += 1
    if (talk.turns < TURNS) return void this.#free.push(talk)
    this.#count -= 1
    const choice = this.#random()
    if (choice < 0.4) await this.#client.threads.remove(talk.id)
    else if (choice < 0.6) await this.#client.threads.erase(talk.id)
  }

  async #take(): Promise<Talk> {
    const isFull = this.#count >= THREADS
    if (isFull && this.#free.length > 0) {
      const index = Math.trunc(this.#random() * this.#free.length)
      return this.#free.splice(index, 1)[0]!
    }
    this.#count += 1
    const { id } = await this.#client.threads.create({ agent: 'desk', tags: ['soak'] })
    return { id, turns: 0 }
  }
}

function must(holds: boolean, what: string): void {
  if (!holds) throw new Error(what)
}

/** Sends a message and waits for the answer that it must have. */
function said({ client, threads }: Context, text: string, wanted: string): Promise<void> {
  return threads.with(async (id) => {
    const result = await client.threads.run(id, text)
    must(result.outcome === 'completed' && result.text === wanted, JSON.stringify(result))
  })
}

const SOME = Array(12).fill('some').join(' ')

function turn(load: Context): Promise<void> {
  return said(load, 'hello', SOME)
}

function stream({ client, threads, random }: Context): Promise<void> {
  return threads.with(async (id) => {
    const { seq } = await client.threads.send(id, random() < 0.3 ? 'paced' : 'hello')
    let hasEnd = false
    const options = { after: String(seq), untilParked: true }
    for await (const { event } of client.stream(id, options))
      hasEnd ||= event.type === 'session_end'
    must(hasEnd, 'the stream ended before the session')
  })
}

function ask(url: string, path: string, init: RequestInit & { json?: object }): Promise<Response> {
  const { json, ...rest } = init
  return fetch(`${url}${path}`, {
    ...rest,
    method: 'POST',
    headers: { authorization: `Bearer ${KEY}`, 'content-type': 'application/json' },
    body: JSON.stringify(json),
  })
}

const messages = [{ role: 'user', content: 'hello' }]

async function compatible({ url, random }: Context): Promise<void> {
  const isStream = random() < 0.5
  const [path, body] = [
    ['/v1/chat/completions', { messages }],
    ['/v1/responses', { input: 'hello' }],
    ['/v1/messages', { messages, max_tokens: 1000 }],
  ][Math.trunc(random() * 3)] as [string, object]
  const response = await ask(url, path, { json: { model: 'desk', stream: isStream, ...body } })
  const text = await response.text()
  must(response.ok && text.includes('some'), `${path} ${response.status} ${text.slice(0, 300)}`)
}

/** Leaves a stream in the middle and stops the run. */
function abortRun({ client, threads }: Context): Promise<void> {
  return threads.with(async (id) => {
    const { seq } = await client.threads.send(id, 'paced')
    const abort = new AbortController()
    for await (const { event } of client.stream(id, { after: String(seq), signal: abort.signal }))
      // The answer may have ended before the stream was open; deltas are not stored.
      if (event.type === 'text_delta' || event.type === 'session_end') abort.abort()
    await client.threads.stop(id)
    const { outcome } = await client.threads.settled(id)
    must(outcome === 'stopped' || outcome === 'completed', `after a stop: ${outcome}`)
  })
}

async function abortCompatible({ url }: Context): Promise<void> {
  const abort = new AbortController()
  const json = { model: 'desk', stream: true, messages: [{ role: 'user', content: 'paced' }] }
  const response = await ask(url, '/v1/chat/completions', { json, signal: abort.signal })
  await response.body!.getReader().read()
  abort.abort()
}

function approve({ client, threads, random }: Context): Promise<void> {
  return threads.with(async (id) => {
    const { waiting } = await client.threads.run(id, 'pay')
    const [item] = waiting
    must(item !== undefined, 'a payment did not wait for an approval')
    if (random() < 0.7) await client.inbox.approve(item!)
    else await client.inbox.deny({ ...item!, reason: 'Not today.' })
    const { outcome } = await client.threads.settled(id)
    must(outcome === 'completed', `after a decision: ${outcome}`)
  })
}

function timer({ client, threads, random }: Context): Promise<void> {
  return threads.with(async (id) => {
    await client.threads.values.set(id, 'reminded', false)
    await client.threads.effects.schedule(id, 'remind', {}, 200 + Math.trunc(random() * 2000))
    for (let look = 0; look < 200; look++) {
      if ((await client.threads.values.get(id, 'reminded')) === true) return
      await new Promise((resolve) => setTimeout(resolve, 250))
    }
    throw new Error('a timer did not fire')
  })
}

function chat({ url, threads }: Context): Promise<void> {
  return threads.with(async (id) => {
    const message = {
      id: crypto.randomUUID(),
      role: 'user',
      parts: [{ type: 'text', text: 'hello' }],
    }
    const json = { id, messages: [message], trigger: 'submit-message' }
    const response = await ask(url, '/agents/desk/chat', { json })
    const text = await response.text()
    must(response.ok && text.includes('some'), `chat ${response.status} ${text.slice(0, 300)}`)
  })
}

function file({ client, threads }: Context): Promise<void> {
  return threads.with(async (id) => {
    const bytes = new TextEncoder().encode('a line of a file\n'.repeat(1000))
    await client.threads.files.write(id, '/notes/a.txt', bytes, { mediaType: 'text/plain' })
    const read = await client.threads.files.read(id, '/notes/a.txt')
    must(read.bytes.length === bytes.length, 'a file came back shorter')
    await client.threads.files.remove(id, '/notes/a.txt')
  })
}

/** A client that opens a stream of a long answer and does not read it for a while. */
function slowReader({ url, client, random, slowMs }: Context): Promise<void> {
  return unread(url, client, { holdMs: random() * slowMs })
}

/** Opens a stream of an answer of a megabyte, reads nothing for some time and leaves. */
export async function unread(
  url: string,
  client: Client,
  { holdMs }: { readonly holdMs: number },
): Promise<void> {
  const { id } = await client.threads.create({ agent: 'desk' })
  const { hostname, port } = new URL(url)
  const socket = connect(Number(port), hostname)
  socket.on('error', () => undefined) // the server may cut it off, which is its right
  socket.pause()
  socket.write(
    `GET /threads/${id}/stream HTTP/1.1\r\nhost: ${hostname}:${port}\r\nauthorization: Bearer ${KEY}\r\n\r\n`,
  )
  try {
    const { outcome } = await client.threads.run(id, 'long')
    must(outcome === 'completed', `with a slow reader: ${outcome}`)
    await new Promise((resolve) => setTimeout(resolve, holdMs))
  } finally {
    socket.destroy()
  }
  await client.threads.remove(id)
}
