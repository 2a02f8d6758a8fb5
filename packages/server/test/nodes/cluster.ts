import { createProvider, type LLMRequest, type ModelReference } from '@skein/ai'
import { says, scripted } from '@skein/ai/testing'
import type { Random } from '@skein/base'
import {
  createRuntime,
  memoryStore,
  type EmbeddedRuntime,
  type RuntimeOptions,
  type Store,
  type NodeLink,
  type NodeNotice,
} from '@skein/runtime'
import { createHttp, type Http, type HttpOptions } from '@skein/server'

export const SECRET = 'a-secret-that-all-nodes-of-the-test-have'

/** What may happen to a notice between two nodes. */
export interface Faults {
  readonly random: Random
  /** The chances that a notice is lost, or arrives twice. */
  readonly loss?: number
  readonly duplication?: number
  /** Each notice takes up to this long by itself, so notices overtake one another. */
  readonly maxDelayMs?: number
}

/** The connections among nodes in one process. */
export class Network {
  readonly faults: Faults | undefined
  readonly nodes: Set<MemoryLink> = new Set()
  sent = 0

  constructor(faults?: Faults) {
    this.faults = faults
  }

  link(freezer?: Freezer): NodeLink {
    return new MemoryLink(this, freezer)
  }
}

class MemoryLink implements NodeLink {
  listener: Parameters<NodeLink['start']>[0] | undefined
  readonly freezer: Freezer | undefined
  readonly #network: Network

  constructor(network: Network, freezer?: Freezer) {
    this.#network = network
    this.freezer = freezer
  }

  send(notice: NodeNotice): void {
    const { faults, nodes } = this.#network
    const text = JSON.stringify(notice)
    this.#network.sent++
    for (const node of nodes) {
      if (node === this) continue
      const deliver = (): void => {
        if (!node.freezer?.isFrozen && !this.freezer?.isFrozen)
          node.listener?.notice(JSON.parse(text) as NodeNotice)
      }
      if (!faults) {
        queueMicrotask(deliver)
        continue
      }
      const { random, loss = 0, duplication = 0, maxDelayMs = 0 } = faults
      if (random() < loss) continue
      const times = random() < duplication ? 2 : 1
      for (let i = 0; i < times; i++) setTimeout(deliver, random() * maxDelayMs)
    }
  }

  async start(listener: Parameters<NodeLink['start']>[0]): Promise<void> {
    this.listener = listener
    this.#network.nodes.add(this)
  }

  async stop(): Promise<void> {
    this.#network.nodes.delete(this)
    this.listener = undefined
  }
}

export interface ClusterNode {
  readonly name: string
  readonly address: string
  readonly runtime: EmbeddedRuntime
  readonly http: Http
  readonly freezer: Freezer
}

export interface ClusterOptions {
  readonly faults?: Faults
  readonly store?: Store
  readonly http?: Partial<HttpOptions>
}

/** Nodes in one process, on one store, with links and addresses of their own. */
export class Cluster {
  readonly store: Store
  readonly network: Network
  readonly nodes: Map<string, ClusterNode> = new Map()
  readonly errors: unknown[] = []
  readonly #http: Partial<HttpOptions>

  constructor({ faults, store = memoryStore(), http = {} }: ClusterOptions = {}) {
    this.store = store
    this.network = new Network(faults)
    this.#http = http
  }

  async add(name: string, options: Partial<RuntimeOptions>): Promise<ClusterNode> {
    const address = `http://${name}.test`
    const freezer = new Freezer()
    const runtime = await createRuntime({
      store: shared(this.store, freezer),
      owner: name,
      onError: (error) => void this.errors.push(error),
      nodes: { link: this.network.link(freezer), address, secret: SECRET, fetch: this.fetch },
      ...options,
    })
    const http = createHttp(runtime, { auth: 'none', allowedHosts: '*', ...this.#http })
    const node: ClusterNode = { name, address, runtime, http, freezer }
    this.nodes.set(name, node)
    await runtime.start()
    return node
  }

  /** Sends a request to the node that its address names. */
  readonly fetch = (async (input: string | URL | Request, init?: RequestInit) => {
    const request = new Request(input, init)
    const node = [...this.nodes.values()].find(({ address }) =>
      request.url.startsWith(`${address}/`),
    )
    if (!node || node.freezer.isFrozen) throw new TypeError(`No node is at ${request.url}.`)
    const { body, status, headers } = await node.http.fetch(request)
    const { freezer } = node
    // The connection breaks when the node stands still.
    const cut = new TransformStream<Uint8Array, Uint8Array>({
      transform(chunk, controller) {
        if (freezer.isFrozen) throw new TypeError('The connection is broken.')
        controller.enqueue(chunk)
      },
    })
    return new Response(body?.pipeThrough(cut) ?? null, { status, headers })
  }) as typeof fetch

  async stop(): Promise<void> {
    for (const { freezer } of this.nodes.values()) freezer.thaw()
    for (const { runtime } of this.nodes.values()) await runtime.stop({ graceMs: 0 })
  }
}

/** Whether a node stands still: what it asks of the store waits until it goes on. */
export class Freezer {
  #thawed: Promise<void> | undefined
  #thaw: (() => void) | undefined

  freeze(): void {
    this.#thawed = new Promise((resolve) => (this.#thaw = resolve))
  }

  thaw(): void {
    this.#thawed = undefined
    this.#thaw?.()
  }

  get isFrozen(): boolean {
    return this.#thawed !== undefined
  }

  async through<T>(work: () => Promise<T>): Promise<T> {
    while (this.#thawed) await this.#thawed
    const result = await work()
    while (this.#thawed) await this.#thawed
    return result
  }
}

/** The store as one node sees it: it closes for all only when the test ends. */
export function shared(store: Store, freezer: Freezer = new Freezer()): Store {
  return new Proxy(store, {
    get(target, name) {
      if (name === 'close') return async () => {}
      const member: unknown = Reflect.get(target, name)
      if (typeof member !== 'function') return member
      return (...given: unknown[]) =>
        freezer.through(() => member.apply(target, given) as Promise<unknown>)
    },
  })
}

export interface Paced extends ModelReference {
  /** How often it was asked. */
  readonly asked: readonly LLMRequest[]
}

/** A model that says a text word by word, with a pause before each. */
export function paced(ms: number, reply: (request: LLMRequest) => string): Paced {
  const asked: LLMRequest[] = []
  const inner = scripted((request) => says(reply(request)))
  const bound = inner.provider.handlers.llm!.bind(inner)
  async function* stream(request: LLMRequest) {
    asked.push(request)
    for await (const batch of bound.stream(request)) {
      await new Promise((resolve) => setTimeout(resolve, ms))
      if (request.signal.aborted) throw request.signal.reason
      yield batch
    }
  }
  const { capabilities } = bound
  const provider = createProvider({
    name: 'paced',
    llm: {
      capabilities,
      bind: ({ modelId }) => ({
        modelId,
        provider: 'paced',
        capabilities,
        stream,
        async complete(request) {
          const events = []
          for await (const batch of stream(request)) events.push(...batch)
          return events
        },
      }),
    },
  })
  return { ...provider('paced'), asked }
}

/** Resolves when the condition holds; rejects after a time. */
export async function until(
  isTrue: () => boolean | Promise<boolean>,
  { ms = 20_000, what = 'the condition' }: { readonly ms?: number; readonly what?: string } = {},
): Promise<void> {
  const end = Date.now() + ms
  while (!(await isTrue())) {
    if (Date.now() > end) throw new Error(`Timed out waiting for ${what}.`)
    await new Promise((resolve) => setTimeout(resolve, 5))
  }
}
