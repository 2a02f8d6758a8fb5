import type { NumberedEvent, WaitingItem } from '../runtime-api.ts'
import { type ClientThreads, threadsOf } from './client-threads.ts'
import {
  type EventSourceOptions,
  readEvents,
  type StreamOptions,
  type TreeEvent,
} from './event-source.ts'
import { path, Requester, type RequesterOptions } from './requester.ts'
import type { Answer } from '@skein/agents'

export interface ClientOptions extends RequesterOptions {
  /** How streams come back after a break. */
  readonly streams?: EventSourceOptions
}

/** An agent as the catalogue shows it. */
export interface AgentSummary {
  readonly name: string
  readonly type: 'ai_human' | 'dual_ai'
  readonly title?: string
  readonly description?: string
  readonly sides: readonly {
    readonly side: 'a' | 'b'
    readonly label: string
    readonly prompt: string
    readonly models: readonly string[]
    readonly tools: readonly {
      readonly name: string
      readonly kind: 'tool' | 'handoff' | 'subagent'
    }[]
  }[]
  readonly variables: readonly {
    readonly name: string
    readonly type: 'text' | 'secret'
    readonly required: boolean
    readonly description?: string
  }[]
}

/** A runtime on the other side of the network. */
export interface Client {
  readonly threads: ClientThreads
  readonly inbox: ClientInbox
  readonly agents: {
    list(): Promise<readonly AgentSummary[]>
    get(name: string): Promise<AgentSummary>
  }
  /** Events of a thread, each once and in order, over as many connections as it takes. */
  stream(threadId: string, options?: StreamOptions): AsyncIterable<NumberedEvent>
  /** As `stream`, with all descendants. */
  streamTree(
    threadId: string,
    options?: Omit<StreamOptions, 'untilParked'>,
  ): AsyncIterable<TreeEvent>
}

/**
 * A client of a server of this runtime. Runs in browsers too.
 *
 *     const client = createClient({ url: 'http://127.0.0.1:4111', apiKey })
 *     const thread = await client.threads.create({ agent: 'support', message: 'Hello' })
 *     for await (const { event } of client.stream(thread.id, { untilParked: true })) console.log(event)
 */
export function createClient(options: ClientOptions): Client {
  const requester = new Requester(options)
  return {
    threads: threadsOf(requester),
    inbox: inboxOf(requester),
    agents: {
      async list() {
        const { agents } = await requester.json<{ agents: AgentSummary[] }>('GET', '/agents')
        return agents
      },
      get: (name) => requester.json('GET', path`/agents/${name}`),
    },
    stream: (threadId, stream = {}) => streamOf(requester, threadId, stream, options),
    streamTree: (threadId, stream = {}) => treeOf(requester, threadId, stream, options),
  }
}

async function* streamOf(
  requester: Requester,
  threadId: string,
  stream: StreamOptions,
  { streams }: ClientOptions,
): AsyncGenerator<NumberedEvent, void, undefined> {
  const { includesDeltas, untilParked } = stream
  const query = {
    ...(includesDeltas === false && { deltas: false }),
    ...(untilParked === true && { until: 'parked' }),
  }
  for await (const { id, data } of readEvents(requester, { threadId, query }, stream, streams))
    yield { id, event: JSON.parse(data) as NumberedEvent['event'] } // the server's own event
}

async function* treeOf(
  requester: Requester,
  threadId: string,
  stream: StreamOptions,
  { streams }: ClientOptions,
): AsyncGenerator<TreeEvent, void, undefined> {
  const query = { tree: true, ...(stream.includesDeltas === false && { deltas: false }) }
  for await (const { id, data } of readEvents(requester, { threadId, query }, stream, streams))
    yield { ...(JSON.parse(data) as Omit<TreeEvent, 'position'>), position: id } // the server's own event
}

type Item = Pick<WaitingItem, 'threadId' | 'interruptId'>

/** What waits for a person. Decisions count as those of the person the key belongs to. */
export interface ClientInbox {
  list(query?: {
    readonly rootId?: string
    readonly limit?: number
  }): Promise<readonly WaitingItem[]>
  approve(
    item: Item & { readonly reason?: string; readonly tokens?: readonly string[] },
  ): Promise<void>
  deny(item: Item & { readonly reason: string }): Promise<void>
  answer(item: Item, answer: Extract<Answer, { type: 'result' | 'error' }>): Promise<void>
}

function inboxOf(requester: Requester): ClientInbox {
  const decide = ({ threadId, interruptId }: Item, json: object): Promise<void> =>
    requester.json('POST', path`/approvals/${threadId}/${interruptId}`, { json })
  return {
    async list(query = {}) {
      const { waiting } = await requester.json<{ waiting: WaitingItem[] }>('GET', '/approvals', {
        query,
      })
      return waiting
    },
    approve: ({ reason, tokens, ...item }) => decide(item, { type: 'approve', reason, tokens }),
    deny: ({ reason, ...item }) => decide(item, { type: 'deny', reason }),
    answer: (item, answer) => decide(item, answer),
  }
}
