import { createHash, randomBytes } from 'node:crypto'
import { readFileSync, symlinkSync, writeFileSync } from 'node:fs'
import { join } from 'node:path'
import { canonicalJson, type JsonObject, seededRandom } from '@skein/base'
import type { Sent, Store, WaitingItem } from '@skein/runtime'
import { createClient } from '@skein/server/client'
import { expect } from 'vitest'
import { Running, skein, tempFolder } from '../../../cli/test/kit.ts'
import { taskId } from '../../src/protocols/a2a/task-id.ts'
import {
  accountsOf,
  contradictions,
  type Effect,
  wrongUndos,
} from '../../../runtime/test/simulation/laws-world.ts'
import type { Deed } from '../../../runtime/test/simulation/ledger.ts'
import { checkThreads, finishedThreads } from '../../../runtime/test/kill/check-killed.ts'
import type { OutsideLine } from './served/outside.ts'

const API_KEY = 'a-key-of-this-test-that-is-long-enough'

/** What befalls a thread while its calls run. Also pairs, because an end may come while another one is handled. */
const KINDS = [
  'kill',
  'stop',
  'time limit',
  'cancel',
  'kill',
  'cut',
  'stop, kill',
  'terminate',
  'time limit, kill',
  'kill, kill',
  'cancel, kill',
  'time limit, stop',
  'shutdown',
] as const
type Kind = (typeof KINDS)[number]

/** The tools of `served/`. */
const EFFECTS: Readonly<Record<string, Effect>> = {
  send: {},
  put: { mayRepeat: true },
  ship: {},
  pay: {},
  undo: { mayRepeat: true, undoes: 'pay' },
}

/** A node whose process was killed keeps a thread for this long at most; so do two that die one after the other. */
const PAUSE_MS = 10_000
const TWO_PAUSES_MS = 16_000

/** How long a thread may be at work, or wait for a person or a child, without an event. */
const QUIET_MS = 60_000

const pass = (ms: number): Promise<void> => new Promise((resolve) => setTimeout(resolve, ms))

/** The servers of a run. */
export interface Ground {
  /** Opens the store after all servers have ended. */
  readonly store: () => Promise<Store>
  /** The settings of each server, beside those that all have. */
  readonly nodes: readonly object[]
  /** Environment variables of every server. */
  readonly env?: Readonly<Record<string, string>>
  /** Called before a server starts, and after it has ended, e.g. for a load balancer. */
  readonly starting?: (index: number) => void
  readonly ended?: (index: number) => void
  /**
   * Watches how long the threads of a process that was killed wait for another one. Without it, the pause of a thread
   * is read from its log: the time from the kill to its next event.
   */
  readonly watchTakeover?: (pid: number) => void
  /** The longest waits that were seen, in ms, by how many processes died in a row. */
  readonly takeovers?: () => Promise<readonly Takeover[]>
}

export interface Takeover {
  readonly ms: number
  readonly deaths: number
}

/**
 * `skein serve` with its default limits, while people write to agents whose calls take time, and stop, cut and cancel
 * them, and while processes are killed. What is true outside is in a ledger that calls write to.
 */
export class Mixes {
  readonly #ground: Ground
  readonly #cwd = tempFolder()
  readonly #ledger = join(this.#cwd, 'ledger.jsonl')
  readonly #random = seededRandom(Number(process.env['SKEIN_SEED'] ?? 11))
  readonly #env: Readonly<Record<string, string>>
  readonly #nodes: (Node | undefined)[] = []
  readonly #killed = new Set<number>()
  /** The processes that have ended, killed or not. */
  readonly #ended = new Set<number>()
  readonly #kills: number[] = []
  readonly #client: ReturnType<typeof createClient>
  /** The acknowledged messages. */
  readonly #sent: ({ readonly threadId: string } & Sent)[] = []
  readonly #counts = new Map<string, number>()
  /** Terminated threads whose sessions have ended. */
  readonly #closed = new Set<string>()
  #isOver = false
  /** Kills and restarts, one after the other. */
  #turns: Promise<unknown> = Promise.resolve()

  constructor(ground: Ground) {
    this.#ground = ground
    this.#env = {
      SKEIN_SECRET_KEY: randomBytes(32).toString('base64'),
      NODE_COMPILE_CACHE: join(this.#cwd, 'compiled'),
      LEDGER: this.#ledger,
      ...ground.env,
    }
    this.#client = createClient({ url: 'http://any.node', apiKey: API_KEY, fetch: this.#fetch })
  }

  /** Plays so many mixes in some lanes beside each other, and checks the law. Returns what was counted. */
  async play(count: number, lanes: number = 10): Promise<string> {
    await this.#prepare()
    const deciding = this.#decide()
    let next = 0
    const lane = async (): Promise<void> => {
      for (let number = next++; number < count; number = next++)
        await this.#mix(number, KINDS[number % KINDS.length]!)
    }
    await Promise.all(Array.from({ length: lanes }, lane))
    await this.#rest()
    this.#isOver = true
    await deciding
    await Promise.all(this.#nodes.map((node) => node && this.#end(node)))
    return this.#check(count)
  }

  async #prepare(): Promise<void> {
    writeFileSync(this.#ledger, '')
    symlinkSync(join(import.meta.dirname, 'served'), join(this.#cwd, 'definitions'))
    await skein(['keys', 'governance.json'], { cwd: this.#cwd })
    const sha256 = createHash('sha256').update(API_KEY).digest('hex')
    for (const [index, own] of this.#ground.nodes.entries()) {
      const config = {
        agents: 'definitions',
        port: 0,
        governanceKeys: 'governance.json',
        authKeys: [{ sha256, tenant: 'acme', scopes: ['admin'] }],
        ...own,
      }
      writeFileSync(join(this.#cwd, `node${index}.json`), JSON.stringify(config))
    }
    await Promise.all(this.#ground.nodes.map((_, index) => this.#start(index)))
  }

  async #start(index: number): Promise<void> {
    this.#ground.starting?.(index)
    const args = ['serve', '--scripted', '--config', `node${index}.json`]
    const running = new Running(args, { cwd: this.#cwd, env: this.#env })
    await running.until('stderr', '"listening"')
    this.#starts++
    this.#nodes[index] = { running, url: /"url":"([^"]+)"/.exec(running.stderr)![1]! }
  }

  /** Kills one of the servers, or tells it to end, and starts it again. */
  #down(signal: 'SIGKILL' | 'SIGTERM'): Promise<void> {
    const done = this.#turns.then(async () => {
      const index = Math.floor(this.#random() * this.#nodes.length)
      const node = this.#nodes[index]!
      this.#nodes[index] = undefined
      const { pid } = node.running.child
      if (signal === 'SIGTERM') await this.#end(node)
      else {
        this.#killed.add(pid!)
        node.running.signal('SIGKILL')
        await node.running.ended
        this.#kills.push(Date.now())
        this.#ground.watchTakeover?.(pid!)
      }
      this.#ended.add(pid!)
      this.#ground.ended?.(index)
      await this.#start(index)
    })
    this.#turns = done
    return done
  }

  async #end({ running }: Node): Promise<void> {
    running.signal('SIGTERM')
    const { code, stderr } = await running.ended
    expect(code, stderr.slice(-2_000)).toBe(0)
  }

  /** Sends a request to any server that runs. */
  readonly #fetch = (async (input: string, init?: RequestInit) => {
    const living = (): readonly Node[] => this.#nodes.filter((node) => node !== undefined)
    // A single server that was killed starts again, which takes long on a busy machine.
    for (let turns: unknown; living().length === 0 && turns !== this.#turns;)
      await (turns = this.#turns)
    const alive = living()
    const node = alive[Math.floor(this.#random() * alive.length)]
    if (!node) throw new TypeError('No server runs.')
    return fetch(input.replace('http://any.node', node.url), init)
  }) as typeof fetch

  /** How often a server was started. */
  #starts = 0

  /** Repeats a request until it is answered. Messages and threads have ids, so all of them may be repeated. */
  async #try<T>(work: () => Promise<T>): Promise<T> {
    let until = performance.now() + 60_000
    let starts = this.#starts
    for (;;) {
      try {
        return await work()
      } catch (error) {
        // On a busy machine, restarts one after the other take longer than that.
        if (starts !== this.#starts) until = performance.now() + 60_000
        starts = this.#starts
        const isTemporary = (error as { readonly isTemporary?: boolean }).isTemporary ?? true
        if (!isTemporary || performance.now() > until) throw error
        await pass(100)
      }
    }
  }

  /** One conversation, and what befalls it. */
  async #mix(number: number, kind: Kind): Promise<void> {
    const { threads } = this.#client
    const agent = number % 3 === 2 ? 'judged' : 'desk'
    const refs: string[] = []
    const clientId = `mix-${number}`
    const { id } = await this.#try(() => threads.create({ agent, clientId }))
    await this.#send(
      id,
      `m-${number}-0`,
      JSON.stringify({ calls: this.#calls(number, kind, refs) }),
    )
    await this.#begun(refs)
    await pass(this.#random() * 900)
    for (const strike of kind.split(', ')) {
      this.#counts.set(strike, (this.#counts.get(strike) ?? 0) + 1)
      await this.#strike(id, strike, number)
      await pass(this.#random() * 400)
    }
    if (kind.includes('terminate')) return
    await this.#resting(id)
    // It takes messages as before.
    await this.#send(id, `m-${number}-1`, 'And now?')
    await this.#resting(id)
  }

  async #send(threadId: string, messageId: string, text: string, more: object = {}): Promise<void> {
    const message = { text, messageId, ...more }
    const sent = await this.#try(() => this.#client.threads.send(threadId, message))
    this.#sent.push({ threadId, ...sent })
  }

  #calls(number: number, kind: Kind, refs: string[]): object[] {
    const pick = <T>(...values: readonly T[]): T =>
      values[Math.floor(this.#random() * values.length)]!
    const isLate = kind.includes('limit')
    return Array.from({ length: pick(1, 2, 3) }, (_, place) => {
      const ref = `r-${number}-${place}`
      refs.push(ref)
      const slow = pick(1_700, 3_000, 8_000)
      const args = {
        ref,
        beforeMs: isLate && place === 0 ? slow : pick(20, 200, 700),
        afterMs: pick(20, 300, 700),
        ...pick<object>({}, { cents: '7' }, { to: 'ada' }, { to: 3 }),
      }
      const tool = pick('send', 'put', 'ship', 'pay', 'crew')
      if (tool !== 'crew') return { tool, args }
      const message = JSON.stringify({ calls: [{ tool: pick('send', 'pay'), args }] })
      return { tool, args: { message } }
    })
  }

  /** Waits until the code of a call runs, for some seconds. */
  async #begun(refs: readonly string[]): Promise<void> {
    for (let waits = 0; waits < 50; waits++, await pass(100))
      if (this.#lines().some(({ ref }) => refs.includes(ref))) return
  }

  async #strike(id: string, strike: string, number: number): Promise<void> {
    const { threads } = this.#client
    switch (strike) {
      case 'kill':
        return this.#down('SIGKILL')
      case 'shutdown':
        return this.#down('SIGTERM')
      case 'stop':
        return this.#try(() => threads.stop(id))
      case 'terminate':
        return this.#try(() => threads.terminate(id))
      case 'cut':
        return this.#send(id, `m-${number}-cut`, 'Something else.', { ifBusy: 'cut' })
      case 'cancel':
        return this.#cancel(id)
      default: // the time limit of a call
    }
  }

  /** Cancels the task of a thread through A2A. */
  async #cancel(threadId: string): Promise<void> {
    const { agent } = await this.#try(() => this.#client.threads.get(threadId))
    const start = this.#sent.find((one) => one.threadId === threadId)!
    const body = {
      jsonrpc: '2.0',
      id: 1,
      method: 'tasks/cancel',
      params: { id: taskId(start) },
    }
    const answer = await this.#try(() =>
      this.#fetch(`http://any.node/agents/${agent}/a2a`, {
        method: 'POST',
        headers: { authorization: `Bearer ${API_KEY}`, 'content-type': 'application/json' },
        body: JSON.stringify(body),
      }),
    )
    const { error } = (await answer.json()) as { readonly error?: { readonly message: string } }
    // A task that has ended meanwhile cannot be cancelled.
    const outcome = error === undefined ? 'canceled' : `not canceled: ${error.message.slice(0, 60)}`
    this.#counts.set(outcome, (this.#counts.get(outcome) ?? 0) + 1)
  }

  /** Approves what waits for a person, and answers questions about calls with what the ledger says. */
  async #decide(): Promise<void> {
    while (!this.#isOver) {
      const items = await this.#try(() => this.#client.inbox.list())
      // Another decision may have come first: a request whose answer was lost is repeated.
      for (const item of items) await this.#answer(item).catch(() => {})
      await pass(300)
    }
  }

  async #answer({ threadId, interruptId, kind, toolName, question }: WaitingItem): Promise<void> {
    const { inbox } = this.#client
    const item = { threadId, interruptId }
    if (kind === 'approval') return void (await inbox.approve(item))
    const { ref } = (question as { readonly arguments: { readonly ref: string } }).arguments
    const own = this.#lines().filter((line) => line.tool === toolName && line.ref === ref)
    const open = own.filter(({ what }) => what === 'begin').length
    const over = own.filter(({ what, pid }) => what === 'end' || this.#ended.has(pid)).length
    if (own.some(({ what }) => what === 'deed')) await inbox.settle(item, 'applied')
    // Its code may still run in a process that lives: then nobody can say that it did not happen.
    else if (over >= open) await inbox.settle(item, 'absent')
  }

  /** Waits until a thread has nothing to do; one that was stopped is resumed. Fails when nothing happens in it. */
  async #resting(id: string): Promise<void> {
    const { threads } = this.#client
    let until = performance.now() + QUIET_MS
    let last = 0
    let starts = this.#starts
    for (;;) {
      const { lifecycle, seq } = await this.#try(() => threads.get(id))
      if (seq !== last || starts !== this.#starts) until = performance.now() + QUIET_MS
      last = seq
      starts = this.#starts
      if (lifecycle === 'idle' || lifecycle === 'failed' || lifecycle === 'terminated') return
      if (lifecycle === 'stopped') {
        if (this.#random() < 0.5) return
        await this.#try(() => threads.resume(id))
      }
      if (performance.now() > until) {
        const events = (await this.#try(() => threads.events(id, { limit: 1000 }))).slice(-12)
        throw new Error(`${id} comes to no rest, it is ${lifecycle}: ${JSON.stringify(events)}`)
      }
      await pass(150)
    }
  }

  /**
   * Whether no thread works any more: also one that was terminated still has to end its session, and after a kill it
   * waits for its lease to end first.
   */
  async #isStill(): Promise<boolean> {
    const heads = await this.#try(() => this.#client.threads.list({ limit: 1000 }))
    for (const { id, lifecycle } of heads) {
      if (lifecycle === 'running' || lifecycle === 'stopping') return false
      if (lifecycle !== 'terminated' || this.#closed.has(id)) continue
      const events = await this.#try(() => this.#client.threads.events(id, { limit: 1000 }))
      const count = (type: string): number =>
        events.filter(({ event }) => event.type === type).length
      if (count('session_start') > count('session_end')) return false
      this.#closed.add(id)
    }
    return true
  }

  /** Waits until nobody is asked any more, every call that runs has ended, and no thread works. */
  async #rest(): Promise<void> {
    await this.#turns
    const until = performance.now() + 60_000
    while (performance.now() < until) {
      const lines = this.#lines().filter(({ pid }) => !this.#ended.has(pid))
      const begun = lines.filter(({ what }) => what === 'begin').length
      const ended = lines.filter(({ what }) => what === 'end').length
      const items = await this.#try(() => this.#client.inbox.list())
      if (begun === ended && items.length === 0 && (await this.#isStill()))
        return void (await pass(1_000))
      await pass(300)
    }
    throw new Error('Something still waits for a person, a call does not end, or a thread works.')
  }

  #lines(): readonly OutsideLine[] {
    const lines = readFileSync(this.#ledger, 'utf8').split('\n').slice(0, -1)
    return lines.map((line) => JSON.parse(line) as OutsideLine)
  }

  async #check(count: number): Promise<string> {
    const lines = this.#lines()
    const deeds: Deed[] = lines
      .filter(({ what }) => what === 'deed')
      .map(({ args, ...line }) => ({ ...line, args: canonicalJson(args as JsonObject) }))
    const takeovers = (await this.#ground.takeovers?.()) ?? []
    const store = await this.#ground.store()
    const threads = await finishedThreads(store)
    await store.close()
    const faults = checkThreads(threads, this.#sent).map((fault) => {
      const id = [...threads.keys()].find((one) => fault.startsWith(one))
      return id === undefined ? fault : `${fault}: ${lastOf(threads.get(id)!.events)}`
    })
    const outcomes: Record<string, number> = {}
    for (const { head, events } of threads.values()) {
      const own = deeds.filter(({ threadId }) => threadId === head.id)
      for (const fault of contradictions(events, own, EFFECTS)) faults.push(`${head.id}: ${fault}`)
      for (const { says } of accountsOf(events, EFFECTS).values())
        outcomes[says ?? 'open'] = (outcomes[says ?? 'open'] ?? 0) + 1
    }
    const logs = [...threads.values()].map(({ events }) => events)
    faults.push(...wrongUndos(logs, deeds, EFFECTS))
    for (const { what, pid, threadId, callId, tool, ref } of lines) {
      if (what !== 'end' || this.#killed.has(pid) || EFFECTS[tool]?.mayRepeat) continue
      const account = accountsOf(threads.get(threadId)?.events ?? [], EFFECTS).get(callId)
      if (account?.says !== 'done')
        faults.push(`${threadId}: ${tool} ${ref} has returned, and the log says ${account?.says}`)
    }
    const pauses = this.#ground.takeovers ? takeovers : this.#pausesIn(logs)
    const once = pauses.filter(({ deaths }) => deaths === 1).map(({ ms }) => ms)
    const more = pauses.filter(({ deaths }) => deaths > 1).map(({ ms }) => ms)
    const most = (all: readonly number[]): number => Math.round(Math.max(0, ...all))
    expect(faults).toEqual([])
    expect(most(once)).toBeLessThanOrEqual(PAUSE_MS)
    expect(most(more)).toBeLessThanOrEqual(TWO_PAUSES_MS)
    const strikes = JSON.stringify(Object.fromEntries(this.#counts))
    return `${count} mixes ${strikes}; ${threads.size} threads, ${deeds.length} deeds, the logs say ${JSON.stringify(outcomes)}; 0 contradictions, 0 lost, 0 doubled; ${pauses.length} pauses, the longest ${most(once)} ms, of those after two deaths (${more.length}) ${most(more)} ms`
  }

  /** How long threads that were at work when their process was killed waited until their next event. */
  #pausesIn(
    logs: readonly (readonly { readonly type: string; readonly at: string }[])[],
  ): Takeover[] {
    const pauses: Takeover[] = []
    for (const events of logs)
      for (const kill of this.#kills) {
        const place = events.findIndex(({ at }) => Date.parse(at) > kill)
        const before = events.slice(0, place)
        const isAtWork =
          before.findLast(({ type }) => type === 'session_start' || type === 'session_end')
            ?.type === 'session_start' && before.at(-1)?.type !== 'status_changed'
        if (place <= 0 || !isAtWork) continue
        const until = Date.parse(events[place]!.at)
        const deaths = this.#kills.filter((one) => one >= kill && one < until).length
        pauses.push({ ms: until - kill, deaths })
      }
    return pauses
  }
}

/** The end of a log, for the report of a fault. */
function lastOf(events: readonly { readonly type: string; readonly at: string }[]): string {
  return events
    .slice(-25)
    .map(
      ({ at, type, ...rest }) =>
        `${at.slice(11, 23)} ${type} ${JSON.stringify(rest).slice(0, 200)}`,
    )
    .join('\n')
}

interface Node {
  readonly running: Running
  readonly url: string
}
