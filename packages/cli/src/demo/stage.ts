import { mkdirSync, readFileSync } from 'node:fs'
import { extname, join } from 'node:path'
import { setTimeout as sleep } from 'node:timers/promises'
import { approve, type PrivateJwk } from '@skein/governance/approvals'
import type { verifyAudit, WaitingItem } from '@skein/runtime'
import { createClient, type Client } from '@skein/server/client'
import { STATE_FOLDER } from '../config/project-folder.ts'
import { type DemoProcess, startProcess } from './processes.ts'

/** How often the demo looks whether the bank has received a payment. */
const POLL_MS = 20
/** How long the approval that the demo signs is valid. */
const APPROVAL_MS = 600_000

/** What the bank has counted; `demo/bank.ts` sends it. */
export interface BankBook {
  readonly payments: readonly {
    readonly type: string
    readonly order: string
    readonly amount: number
  }[]
  /** How many payments the bank has answered; the others it made without a word. */
  readonly answered: number
  readonly lookups: number
}

/** Where the demo runs, and with what. */
export interface StageOptions {
  /** The folder of the definitions and of the bank's program. */
  readonly folder: string
  /** The program of the command `skein`, which serves the agents. */
  readonly skein: string
  /** The port of the agents' server; 0: any. */
  readonly port: number
  readonly verify: typeof verifyAudit
  /** Ends the processes. */
  readonly signal: AbortSignal
  /** The folder of the store. */
  readonly home: string
}

/** The two processes of the demo: the agents, which can be killed and started again, and the bank. */
export class Stage {
  readonly verify: typeof verifyAudit
  readonly #options: StageOptions
  readonly #processes: DemoProcess[] = []
  #agents: DemoProcess | undefined
  #bank: DemoProcess | undefined
  #client: Client | undefined

  constructor(options: StageOptions) {
    this.#options = options
    this.verify = options.verify
  }

  async open(): Promise<void> {
    const { folder, home } = this.#options
    // Makes this folder a project, so that no configuration of a folder above it is used.
    mkdirSync(join(home, STATE_FOLDER), { mode: 0o700 })
    // The published package has JavaScript; a clone has the source.
    const file = join(folder, `bank${extname(import.meta.filename)}`)
    this.#bank = await this.#start({ name: 'the bank', args: [file], cwd: home })
    await this.startAgents()
  }

  /** Starts the process of the agents: `skein dev`, with its store in the folder of the demo. */
  async startAgents(): Promise<void> {
    const { folder, skein, port, home } = this.#options
    this.#agents = await this.#start({
      name: 'the agents',
      args: [skein, 'dev', folder, '--port', String(port), '--json', '--log', 'silent'],
      cwd: home,
      env: { DEMO_BANK_URL: this.#bank!.url },
    })
    this.#client = createClient({ url: this.#agents.url })
  }

  /** Kills the process of the agents. Returns the signal that ended it, as the system reports it. */
  async killAgents(): Promise<string> {
    return this.#agents!.kill()
  }

  get agentsUrl(): string {
    return this.#agents!.url
  }

  /** The client of the process that runs now. */
  get client(): Client {
    return this.#client!
  }

  /** Resolves when all processes have ended. */
  async closed(): Promise<void> {
    await Promise.all(this.#processes.map(({ ended }) => ended))
  }

  /** Starts a thread, sends it a message, and returns it with the call that waits, if one does. */
  async ask(
    agent: string,
    text: string,
    threadId?: string,
  ): Promise<Omit<Awaited<ReturnType<Client['threads']['run']>>, 'waiting'> & Asked> {
    const id = threadId ?? (await this.client.threads.create({ agent })).id
    const result = await this.client.threads.run(id, text)
    return { ...result, threadId: id, item: result.waiting[0] }
  }

  /** Signs an approval of a waiting call, as the program of a person who may approve does. */
  sign({ request }: WaitingItem): Promise<string> {
    const file = join(this.#options.home, STATE_FOLDER, 'keys', 'approvals.key.json')
    const key = JSON.parse(readFileSync(file, 'utf8')) as PrivateJwk
    const who = { audience: 'skein', issuer: 'runtime', approver: 'pat' }
    return approve(request!, { ...who, key, ttlMs: APPROVAL_MS })
  }

  /** What the bank has counted so far. */
  async book(): Promise<BankBook> {
    return (await (await this.#askBank('/book')).json()) as BankBook
  }

  /** How often the bank was asked to do this for an order. */
  async count(type: string, order: string): Promise<number> {
    const { payments } = await this.book()
    return payments.filter((payment) => payment.type === type && payment.order === order).length
  }

  /** Makes the bank pay without answering, or answer again. */
  async hold(isHeld: boolean): Promise<void> {
    await this.#askBank('/held', { method: 'PUT', body: JSON.stringify(isHeld) })
  }

  /** Waits until the bank has been called this often. */
  async untilPaid(times: number): Promise<void> {
    while ((await this.book()).payments.length < times)
      await sleep(POLL_MS, undefined, { signal: this.#options.signal })
  }

  #askBank(path: string, init: RequestInit = {}): Promise<Response> {
    return fetch(`${this.#bank!.url}${path}`, { ...init, signal: this.#options.signal })
  }

  async #start(program: Parameters<typeof startProcess>[0]): Promise<DemoProcess> {
    const started = startProcess(program, this.#options.signal)
    this.#processes.push(started)
    await started.ready
    return started
  }
}

/** A thread that was sent a message, and the call that waits in it. */
export interface Asked {
  readonly threadId: string
  readonly item: WaitingItem | undefined
}
