import type { Answer } from '@skein/agents'
import type { TreeEvent } from '../http/stream/tree-stream.ts'
import type { AgentSummary } from '../operations/agents.ts'
import type {
  ApprovalDecision,
  FoundEffect,
  Inbox,
  LimitsReport,
  NumberedEvent,
  WaitingItem,
} from '../contract/runtime-api.ts'
import {
  threadsOf,
  userValuesOf,
  type ClientThreads,
  type ClientUserValues,
} from './client-threads.ts'
import { readEvents, type EventSourceOptions, type StreamOptions } from './event-source.ts'
import { createRequester, type RequesterOptions } from './requester.ts'

/** The address of the server, the key, and how streams reconnect. */
export interface ClientOptions extends RequesterOptions {
  /** How streams reconnect after a break. */
  readonly streams?: EventSourceOptions
}

type Item = Pick<WaitingItem, 'threadId' | 'interruptId'>

/** Everything that waits for a person. Decisions are recorded under the user of the key. */
export interface ClientInbox {
  list(query?: { readonly rootId?: string; readonly limit?: number }): ReturnType<Inbox['list']>
  approve(item: Item & Omit<ApprovalDecision, 'by'>): Promise<void>
  deny(item: Item & { readonly reason: string }): Promise<void>
  /** Records what a person found out about a call in doubt; see `Inbox.settle`. */
  settle(item: Item, found: FoundEffect): Promise<void>
  answer(item: Item, answer: Extract<Answer, { type: 'result' | 'error' }>): Promise<void>
}

/** A runtime that is reached over the network. */
export interface Client {
  readonly threads: ClientThreads
  readonly inbox: ClientInbox
  /** What the tenant of the key has spent of its limits, and what was refused and removed. Needs `admin`. */
  limits(): Promise<LimitsReport>
  readonly users: {
    /** The values of users, by the name of the user; the tenant is that of the key. */
    readonly values: ClientUserValues
  }
  readonly agents: {
    list(): Promise<readonly AgentSummary[]>
    get(name: string): Promise<AgentSummary>
  }
  /** Yields the events of a thread, each once and in order; reconnects whenever the connection breaks. */
  stream(threadId: string, options?: StreamOptions): AsyncIterable<NumberedEvent>
  /** Yields the events of a thread and of all its descendants, as `stream` does. */
  streamTree(threadId: string, options?: StreamOptions): AsyncIterable<TreeEvent>
}

/**
 * Creates a client for a server of this runtime. Runs in browsers, too.
 *
 *     const client = createClient({ url: 'http://127.0.0.1:4111', apiKey })
 *     const thread = await client.threads.create({ agent: 'support', message: 'Hello' })
 *     for await (const { event } of client.stream(thread.id, { untilParked: true })) console.log(event)
 */
export function createClient(options: ClientOptions): Client {
  const requester = createRequester(options)
  const { call, pick } = requester
  const decide = ({ threadId, interruptId }: Item, json: object): Promise<void> =>
    call('decide', { threadId, interruptId }, { json })
  const read = (threadId: string, query: { readonly tree?: boolean }, stream: StreamOptions) =>
    readEvents(requester, { threadId, query }, stream, options.streams)
  return {
    threads: threadsOf(requester),
    inbox: {
      list: (query) => pick('listApprovals', {}, 'waiting', { query }),
      approve: ({ reason, tokens, digest, with: args, ...item }) =>
        decide(item, { type: 'approve', reason, tokens, digest, with: args }),
      deny: ({ reason, ...item }) => decide(item, { type: 'deny', reason }),
      settle: (item, found) => decide(item, { type: 'settle', found }),
      answer: (item, answer) => decide(item, answer),
    },
    limits: () => call('getLimits', {}),
    users: { values: userValuesOf(requester) },
    agents: {
      list: () => pick('listAgents', {}, 'agents'),
      get: (agent) => call('getAgent', { agent }),
    },
    async *stream(threadId, stream = {}) {
      for await (const { id, data } of read(threadId, {}, stream))
        yield { id, event: JSON.parse(data) as NumberedEvent['event'] } // the server sends JSON of this type
    },
    async *streamTree(threadId, stream = {}) {
      for await (const { id, data } of read(threadId, { tree: true }, stream))
        // The server sends JSON of this type.
        yield { ...(JSON.parse(data) as Omit<TreeEvent, 'position'>), position: id }
    },
  }
}
