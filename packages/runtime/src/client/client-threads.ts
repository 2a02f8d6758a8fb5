import type { MessageJSON } from '@skein/ai'
import type { Thread as ThreadDocument } from '@skein/threads'
import type { StoredEvent } from '../event.ts'
import type {
  AuditExport,
  CostReport,
  CreateThread,
  ModelLog,
  ModelLogDetail,
  SendMessage,
  Sent,
  SessionResult,
  ThreadEffects,
  ThreadEnv,
  ThreadFiles,
  ThreadValues,
  ThreadVariables,
} from '../runtime-api.ts'
import type { ThreadHead, ThreadQuery } from '../store/store.ts'
import type { MessageQuery, Side, StoredMessage, SubagentRegistryEntry } from '../thread-state.ts'
import { effectsOf, envOf, filesOf, valuesOf, variablesOf } from './client-contents.ts'
import { isThere, path, type Requester } from './requester.ts'

/** A stored message as it travels: `messageFromJSON` of `@skein/ai` makes a message of it. */
export type WireMessage = Omit<StoredMessage, 'message'> & { readonly message: MessageJSON }

type Signal = { readonly signal?: AbortSignal }

/** Threads of a server, as `runtime.threads` has them. */
export interface ClientThreads {
  create(thread: Omit<CreateThread, 'tenant'>): Promise<ThreadHead>
  get(threadId: string): Promise<ThreadHead>
  byClientId(clientId: string): Promise<ThreadHead | undefined>
  list(query?: Omit<ThreadQuery, 'tenant'>): Promise<readonly ThreadHead[]>
  update(
    threadId: string,
    change: { readonly title?: string; readonly tags?: readonly string[] },
  ): Promise<ThreadHead>
  remove(threadId: string): Promise<void>

  send(threadId: string, message: SendMessage | string): Promise<Sent>
  unsend(threadId: string, queueId: string): Promise<boolean>
  /** Sends and waits until the session ends or waits for a person. */
  run(threadId: string, message: SendMessage | string, options?: Signal): Promise<SessionResult>
  settled(threadId: string, options?: Signal): Promise<SessionResult>
  stop(threadId: string, options?: { readonly afterStep?: boolean }): Promise<void>
  resume(threadId: string, options?: { readonly side?: Side }): Promise<void>
  terminate(threadId: string, options?: { readonly detach?: boolean }): Promise<void>
  erase(threadId: string): Promise<void>
  fork(
    threadId: string,
    options?: { readonly upTo?: string; readonly title?: string },
  ): Promise<ThreadHead>

  messages(threadId: string, query?: MessageQuery): Promise<readonly WireMessage[]>
  updateMessage(threadId: string, messageId: string, content: string | MessageJSON): Promise<void>
  deleteMessage(threadId: string, messageId: string): Promise<void>
  children(threadId: string): Promise<readonly SubagentRegistryEntry[]>
  events(
    threadId: string,
    options?: { readonly after?: number; readonly limit?: number },
  ): Promise<readonly StoredEvent[]>
  document(threadId: string): Promise<ThreadDocument>
  export(threadId: string): Promise<string>
  import(lines: string): Promise<ThreadHead>

  logs(threadId: string): Promise<readonly ModelLog[]>
  log(threadId: string, logId: string): Promise<ModelLogDetail>
  cost(threadId: string): Promise<CostReport>
  audit(threadId: string): Promise<AuditExport>

  readonly files: Omit<ThreadFiles, 'move'>
  readonly values: ThreadValues
  readonly env: ThreadEnv
  readonly variables: ThreadVariables
  readonly effects: ThreadEffects
}

export function threadsOf(requester: Requester): ClientThreads {
  const to = (threadId: string): string => path`/threads/${threadId}`
  const post = (at: string, json: unknown = {}): Promise<void> =>
    requester.json('POST', at, { json })
  const settled = async (threadId: string, { signal }: Signal = {}): Promise<SessionResult> => {
    for (;;) {
      signal?.throwIfAborted() // a `fetch` of the application's own may not look at it
      const result = await requester.json<SessionResult | undefined>(
        'GET',
        `${to(threadId)}/result`,
        { signal },
      )
      if (result) return result
    }
  }
  const send = (threadId: string, message: SendMessage | string): Promise<Sent> =>
    requester.json('POST', `${to(threadId)}/messages`, {
      json: typeof message === 'string' ? { text: message } : message,
    })
  return {
    create: (thread) => requester.json('POST', '/threads', { json: thread }),
    get: (threadId) => requester.json('GET', to(threadId)),
    byClientId: async (clientId) => (await listed(requester, { clientId }))[0],
    list: (query = {}) => listed(requester, toQuery(query)),
    update: (threadId, change) => requester.json('PATCH', to(threadId), { json: change }),
    remove: (threadId) => requester.json('DELETE', to(threadId)),

    send,
    unsend: (threadId, queueId) =>
      isThere(
        requester.json('DELETE', `${to(threadId)}${path`/queue/${queueId}`}`),
        'MESSAGE_NOT_FOUND',
      ),
    async run(threadId, message, options) {
      await send(threadId, message)
      return settled(threadId, options)
    },
    settled,
    stop: (threadId, options) => post(`${to(threadId)}/stop`, options),
    resume: (threadId, options) => post(`${to(threadId)}/resume`, options),
    terminate: (threadId, options) => post(`${to(threadId)}/terminate`, options),
    erase: (threadId) => post(`${to(threadId)}/erase`),
    fork: (threadId, options = {}) =>
      requester.json('POST', `${to(threadId)}/fork`, { json: options }),

    async messages(threadId, query = {}) {
      const at = `${to(threadId)}/messages`
      const { messages } = await requester.json<{ messages: WireMessage[] }>('GET', at, {
        query: { ...query },
      })
      return messages
    },
    updateMessage: (threadId, messageId, content) =>
      requester.json('PATCH', `${to(threadId)}${path`/messages/${messageId}`}`, {
        json: typeof content === 'string' ? { text: content } : { message: content },
      }),
    deleteMessage: (threadId, messageId) =>
      requester.json('DELETE', `${to(threadId)}${path`/messages/${messageId}`}`),
    async children(threadId) {
      const at = `${to(threadId)}/subagents`
      const { subagents } = await requester.json<{ subagents: SubagentRegistryEntry[] }>('GET', at)
      return subagents
    },
    async events(threadId, options = {}) {
      const at = `${to(threadId)}/events`
      const { events } = await requester.json<{ events: StoredEvent[] }>('GET', at, {
        query: options,
      })
      return events
    },
    document: (threadId) =>
      requester.json('GET', `${to(threadId)}/export`, { query: { format: 'thread' } }),
    async export(threadId) {
      const at = `${to(threadId)}/export`
      return (await requester.send('GET', at, { query: { format: 'jsonl' } })).text()
    },
    import: (lines) =>
      requester.json('POST', '/threads/import', {
        body: lines,
        headers: { 'content-type': 'application/jsonl' },
      }),

    async logs(threadId) {
      const { logs } = await requester.json<{ logs: ModelLog[] }>('GET', `${to(threadId)}/logs`)
      return logs
    },
    log: (threadId, logId) => requester.json('GET', `${to(threadId)}${path`/logs/${logId}`}`),
    cost: (threadId) => requester.json('GET', `${to(threadId)}/cost`),
    audit: (threadId) => requester.json('GET', `${to(threadId)}/audit`),

    files: filesOf(requester),
    values: valuesOf(requester),
    env: envOf(requester),
    variables: variablesOf(requester),
    effects: effectsOf(requester),
  }
}

type Query = Readonly<Record<string, string | number | boolean | undefined>>

function toQuery({ parentId, isWaiting, ...rest }: Omit<ThreadQuery, 'tenant'>): Query {
  return {
    ...rest,
    ...(parentId === null ? { roots: true } : parentId !== undefined && { parentId }),
    ...(isWaiting !== undefined && { waiting: isWaiting }),
  }
}

async function listed(requester: Requester, query: Query): Promise<readonly ThreadHead[]> {
  const { threads } = await requester.json<{ threads: ThreadHead[] }>('GET', '/threads', { query })
  return threads
}
