import type { NumberedEvent } from '../runtime-api.ts'
import { inboxOf, type ClientInbox } from './client-inbox.ts'
import { threadsOf, type ClientThreads } from './client-threads.ts'
import {
  readEvents,
  type EventSourceOptions,
  type StreamOptions,
  type TreeEvent,
} from './event-source.ts'
import { path, Requester, type RequesterOptions } from './requester.ts'

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
