import type { Answer } from '@skein/agents'
import { type JsonObject, type JsonValue, SseDecoder, type SseEvent } from '@skein/base'
import type {
  ApprovalDecision,
  FoundEffect,
  LimitsReport,
  WaitingSelection,
} from '@skein/runtime/serving'
import type { Inbox, ThreadInfo, NumberedEvent, WaitingItem } from '@skein/runtime'
import type { TreeEvent } from '../streams/tree-stream.ts'
import type { AgentDetail, AgentSummary } from '../operations/agents.ts'
import {
  threadsOf,
  userValuesOf,
  type ClientThreads,
  type ClientUserValues,
} from './client-threads.ts'
import { ClientError, createRequester, notReached, type RequesterOptions } from './requester.ts'

/** The address of the server, the key, and how streams reconnect. */
export interface ClientOptions extends RequesterOptions {
  /** How streams reconnect after a break. */
  readonly streams?: EventSourceOptions
}

/** How many items of the inbox one request returns at most. */
const MOST_ITEMS = 1000

type Item = Pick<WaitingItem, 'threadId' | 'interruptId'>

/** Everything that waits for a person. Decisions are recorded in the name of the user of the API key. */
export interface ClientInbox {
  /** Everything that waits, or the first `limit` items. Reads as many pages as that takes. */
  list(
    query?: Omit<WaitingSelection, 'tenant'> & { readonly limit?: number },
  ): ReturnType<Inbox['list']>
  /** A page of what waits, the oldest first. */
  page(query?: Omit<NonNullable<Parameters<Inbox['page']>[0]>, 'tenant'>): ReturnType<Inbox['page']>
  /** One item, also after it was decided. */
  get(item: Item): ReturnType<Inbox['get']>
  approve(item: Item & Omit<ApprovalDecision, 'by'>): Promise<void>
  deny(item: Item & { readonly reason: string }): Promise<void>
  /** Records what a person found out about a call that a crash interrupted; see `Inbox.settle`. */
  settle(item: Item, found: FoundEffect): Promise<void>
  answer(item: Item, answer: Extract<Answer, { type: 'result' | 'error' }>): Promise<void>
}

/** A runtime that is reached over the network. */
export interface Client {
  readonly threads: ClientThreads
  readonly inbox: ClientInbox
  /** What the tenant of the key has spent, and what its limits have refused and removed. Needs the scope `admin`. */
  limits(): Promise<LimitsReport>
  readonly users: {
    /** The values of users, by the name of the user; the tenant is that of the key. */
    readonly values: ClientUserValues
  }
  readonly agents: {
    list(): Promise<readonly AgentSummary[]>
    /** The definition of an agent; the texts of its prompts and its problems only with the scope `logs:read`. */
    get(name: string): Promise<AgentDetail>
    /** Makes one call of a tool, without a model; see `POST /agents/{agent}/tools/{tool}/try`. */
    tryTool(
      name: string,
      tool: string,
      args: JsonObject,
      options?: { readonly waitMs?: number },
    ): Promise<{
      readonly threadId: string
      readonly outcome: string
      readonly result?: JsonValue
      readonly durationMs?: number
      readonly waiting: readonly WaitingItem[]
    }>
  }
  /** Yields the events of a thread, each once and in order; reconnects whenever the connection breaks. */
  stream(threadId: string, options?: StreamOptions): AsyncIterable<NumberedEvent>
  /**
   * Yields each thread that the key may see whenever it changes, with the calls in it that wait for a person.
   * Reconnects as `stream` does. `ready`: all earlier changes were sent. `reset`: changes may be missing, so
   * list the threads again.
   */
  changes(options?: {
    /** The position of an earlier change: what has changed since comes first. Default: the present. */
    readonly after?: string
    readonly signal?: AbortSignal
  }): AsyncIterable<
    | {
        readonly type: 'thread'
        readonly position: string
        readonly thread: ThreadInfo
        readonly waiting: readonly WaitingItem[]
      }
    | { readonly type: 'ready' | 'reset'; readonly position: string }
  >
  /**
   * Yields the events of a thread and of all its descendants, as `stream` does. With `isLive`, the earlier
   * events of descendants that already exist are left out.
   */
  streamTree(
    threadId: string,
    options?: StreamOptions & { readonly isLive?: boolean },
  ): AsyncIterable<TreeEvent>
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
  const waitingPage: ClientInbox['page'] = (query) => call('listApprovals', {}, { query })
  const read = (
    threadId: string,
    query: { readonly tree?: boolean; readonly live?: boolean },
    { after = '0', untilParked, includesDeltas, signal }: StreamOptions,
  ) => {
    const until = untilParked === true ? 'parked' : undefined
    const deltas = includesDeltas === false ? false : undefined
    const send: SendStream = (input) =>
      requester.send(
        'streamThread',
        { threadId },
        { ...input, query: { ...query, after, until, deltas } },
      )
    return readEvents(send, signal, options.streams)
  }
  return {
    threads: threadsOf(requester),
    inbox: {
      async list({ limit = Infinity, ...query } = {}) {
        const waiting: WaitingItem[] = []
        let cursor: string | undefined
        do {
          const rest = Math.min(limit - waiting.length, MOST_ITEMS)
          if (rest <= 0) break
          const page = await waitingPage({ ...query, limit: rest, cursor })
          waiting.push(...page.waiting)
          cursor = page.nextCursor
        } while (cursor !== undefined)
        return waiting
      },
      page: waitingPage,
      get: ({ threadId, interruptId }) => call('getApproval', { threadId, interruptId }),
      approve: ({ reason, tokens, digest, with: args, grantForMs, ...item }) =>
        decide(item, { type: 'approve', reason, tokens, digest, with: args, grantForMs }),
      deny: ({ reason, ...item }) => decide(item, { type: 'deny', reason }),
      settle: (item, found) => decide(item, { type: 'settle', found }),
      answer: (item, answer) => decide(item, answer),
    },
    limits: () => call('getLimits', {}),
    users: { values: userValuesOf(requester) },
    agents: {
      list: () => pick('listAgents', {}, 'agents'),
      get: (agent) => call('getAgent', { agent }),
      tryTool: (agent, tool, args, { waitMs } = {}) =>
        call('tryTool', { agent, tool }, { json: { arguments: args, waitMs } }),
    },
    async *changes({ after, signal } = {}) {
      const send: SendStream = (input) =>
        requester.send('streamChanges', {}, { ...input, query: { after } })
      for await (const { id: position, event, data } of readEvents(send, signal, options.streams))
        if (event === 'thread')
          yield { type: 'thread', position, ...(JSON.parse(data) as ChangedThread) }
        else if (event === 'ready' || event === 'reset') yield { type: event, position }
    },
    async *stream(threadId, stream = {}) {
      for await (const { id, data } of read(threadId, {}, stream))
        yield { id, event: JSON.parse(data) as NumberedEvent['event'] } // the server sends JSON of this type
    },
    async *streamTree(threadId, { isLive: live, ...stream } = {}) {
      for await (const { id, data } of read(threadId, { tree: true, live }, stream))
        // The server sends JSON of this type.
        yield { ...(JSON.parse(data) as Omit<TreeEvent, 'position'>), position: id }
    },
  }
}

/** A changed thread, as the server sends it. */
interface ChangedThread {
  readonly thread: ThreadInfo
  readonly waiting: readonly WaitingItem[]
}

/** Requests a stream from the server. */
type SendStream = (input: {
  readonly headers: Readonly<Record<string, string>>
  readonly signal: AbortSignal | undefined
}) => Promise<Response>

/** The part of a stream to read. */
interface StreamOptions {
  /** Id of the last event you have; when absent, the stream begins with the first event. */
  readonly after?: string
  readonly signal?: AbortSignal
  /** Whether deltas are sent: the pieces of an answer while a model writes it. Default true. */
  readonly includesDeltas?: boolean
  /**
   * Whether the stream ends when the thread and its descendants have stopped working. It ends only after some
   * work that came later than `after`, so it can be opened before a message is sent. Default false.
   */
  readonly untilParked?: boolean
}

/** How streams reconnect after a break. */
interface EventSourceOptions {
  readonly wait?: (ms: number, signal: AbortSignal | undefined) => Promise<void>
  readonly random?: () => number
  /** The time without any data, even a heartbeat, after which a stream is treated as broken. Default 60 s. */
  readonly quietMs?: number
}

const FIRST_WAIT_MS = 250
const LONGEST_WAIT_MS = 15_000

/**
 * Reads a stream of the server. Whenever the connection breaks, it reconnects with the id of the last event,
 * until the server ends the stream or refuses it for good, or the signal aborts.
 */
async function* readEvents(
  send: SendStream,
  signal: AbortSignal | undefined,
  { wait = waitFor, random = Math.random, quietMs = 60_000 }: EventSourceOptions = {},
): AsyncGenerator<SseEvent, void, undefined> {
  let lastId: string | undefined
  let failures = 0
  while (!signal?.aborted) {
    let waitMs: number | undefined
    try {
      const headers: Record<string, string> = { accept: 'text/event-stream' }
      if (lastId) headers['last-event-id'] = lastId
      const response = await send({ headers, signal })
      for await (const event of decoded(response, quietMs)) {
        failures = 0
        if (event.event === 'stream_end') return
        lastId = event.id
        yield event
      }
    } catch (error) {
      if (signal?.aborted) return
      if (!(error instanceof ClientError) || !error.isTemporary) throw error
      waitMs = error.retryAfterMs
    }
    if (signal?.aborted) return
    const backoff = Math.min(FIRST_WAIT_MS * 2 ** failures++, LONGEST_WAIT_MS)
    // The wait is randomised, because after a restart of the server all clients reconnect at the same time.
    await wait(waitMs ?? backoff * (0.5 + random() / 2), signal)
  }
}

async function* decoded(
  response: Response,
  quietMs: number,
): AsyncGenerator<SseEvent, void, undefined> {
  if (!response.body) return
  const decoder = new SseDecoder()
  const reader = response.body.getReader()
  try {
    for (;;) {
      const { done, value } = await readWithin(reader, quietMs)
      if (done) return
      yield* decoder.push(value)
    }
  } finally {
    reader.cancel().catch(() => undefined) // the connection may be broken already
  }
}

/**
 * Reads the next chunk. Throws a temporary error when the connection breaks or goes quiet, so that the caller
 * reconnects.
 */
async function readWithin(
  reader: ReadableStreamDefaultReader<Uint8Array>,
  quietMs: number,
): Promise<ReadableStreamReadResult<Uint8Array>> {
  let timer: ReturnType<typeof setTimeout> | undefined
  const quiet = new Promise<never>((_, reject) => {
    timer = setTimeout(() => reject(notReached(new Error('The stream went quiet.'))), quietMs)
  })
  try {
    return await Promise.race([reader.read(), quiet])
  } catch (error) {
    throw error instanceof ClientError ? error : notReached(error)
  } finally {
    clearTimeout(timer)
  }
}

function waitFor(ms: number, signal: AbortSignal | undefined): Promise<void> {
  return new Promise((resolve) => {
    const finish = (): void => {
      clearTimeout(timer)
      signal?.removeEventListener('abort', finish)
      resolve()
    }
    const timer = setTimeout(finish, ms)
    signal?.addEventListener('abort', finish, { once: true })
  })
}
