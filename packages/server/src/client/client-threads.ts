import type { JsonValue } from '@skein/base'
import type { MessageJSON } from '@skein/ai'
import type { WireMessage } from '../operations/schemas.ts'
import type {
  ChildInfo,
  ForkedThread,
  ForkThread,
  ThreadEffects,
  ThreadEnv,
  ThreadFiles,
  ThreadGrants,
  ThreadValues,
  ThreadVariables,
  UserValues,
} from '@skein/runtime/serving'
import type {
  CreateThread,
  SendMessage,
  SessionResult,
  ThreadId,
  ThreadInfo,
  Threads,
  ThreadQuery,
  MessageQuery,
  Side,
} from '@skein/runtime'
import type { ThreadView } from '@skein/runtime/view'
import { ClientError, isThere, type Requester } from './requester.ts'

/**
 * The threads of a server, with the functions of `runtime.threads`. The differences are declared here: tenant
 * and author are determined by the key, and messages are sent as JSON.
 */
export interface ClientThreads extends Pick<
  Threads,
  | 'get'
  | 'update'
  | 'remove'
  | 'send'
  | 'unsend'
  | 'run'
  | 'settled'
  | 'deleteMessage'
  | 'document'
  | 'export'
  | 'logs'
  | 'failures'
  | 'log'
  | 'cost'
  | 'audit'
  | 'auditPage'
  | 'exportLines'
  | 'values'
  | 'env'
  | 'variables'
  | 'effects'
> {
  create(thread: Omit<CreateThread, 'tenant'>): Promise<ThreadInfo>
  byClientId(clientId: string): Promise<ThreadInfo | undefined>
  list(query?: ThreadListQuery): Promise<readonly ThreadInfo[]>
  /** A page of a list, and the cursor of the next page. */
  page(query?: ThreadListQuery & { readonly cursor?: string }): Promise<{
    readonly threads: readonly ThreadInfo[]
    /** Absent after the last page. */
    readonly nextCursor?: string
  }>
  /**
   * The log, in pages. With `maxResultChars`, longer results of tools are cut to their beginning, and such an event
   * has `isCut`.
   */
  events(
    threadId: string,
    options?: NonNullable<Parameters<Threads['events']>[1]> & { readonly maxResultChars?: number },
  ): Promise<
    readonly (Awaited<ReturnType<Threads['events']>>[number] & { readonly isCut?: boolean })[]
  >
  /** The thread as it is shown to people; with `upTo`, as it was after the event with this number. */
  view(threadId: string, options?: { readonly upTo?: number }): Promise<ThreadView>
  stop(threadId: string, options?: { readonly afterStep?: boolean }): Promise<void>
  resume(threadId: string, options?: { readonly side?: Side }): Promise<void>
  terminate(threadId: string, options?: { readonly detach?: boolean }): Promise<void>
  erase(threadId: string): Promise<void>
  fork(threadId: string, options?: Omit<ForkThread, 'owner'>): Promise<ForkedThread>
  /** The thread as one HTML file without scripts, to keep or to send to someone. */
  html(threadId: string): Promise<string>
  messages(threadId: string, query?: MessageQuery): Promise<readonly WireMessage[]>
  updateMessage(threadId: string, messageId: string, content: string | MessageJSON): Promise<void>
  import(lines: string): Promise<ThreadInfo>
  children(threadId: string): Promise<readonly ChildInfo[]>
  readonly files: Omit<ThreadFiles, 'move'>
  /** Standing grants. They are made and revoked in the name of the key's user. */
  readonly grants: {
    list: ThreadGrants['list']
    /** The grants that hold now, over all threads that you may see. */
    all(query?: { readonly limit?: number }): ReturnType<ThreadGrants['all']>
    make(
      threadId: string,
      grant: Omit<Parameters<ThreadGrants['make']>[1], 'by'>,
    ): ReturnType<ThreadGrants['make']>
    revoke(threadId: string, grantId: string): Promise<void>
  }
}

/** Selects the threads of a list. The key determines the tenant. */
type ThreadListQuery = Omit<ThreadQuery, 'tenant' | 'changedAfter' | 'grantedAfter' | 'after'>

function listQuery({ parentId, isWaiting, ...rest }: ThreadListQuery): Query {
  const place = parentId === null ? { roots: true } : { parentId }
  return { ...rest, ...place, waiting: isWaiting }
}

/** Creates the thread functions of a client. */
export function threadsOf(requester: Requester): ClientThreads {
  const { call, pick } = requester
  const settled: Threads['settled'] = async (threadId, { signal } = {}) => {
    for (;;) {
      signal?.throwIfAborted() // a custom `fetch` may ignore the signal
      // The server answers without content when its time limit is reached while the thread still runs.
      const result = await call('getResult', { threadId }, { signal })
      if (result !== undefined) return result as Awaited<ReturnType<Threads['settled']>>
    }
  }
  const send: Threads['send'] = (threadId, message) =>
    call(
      'sendMessage',
      { threadId },
      { json: typeof message === 'string' ? { text: message } : message },
    )
  const list = (query: Query): Promise<readonly ThreadInfo[]> =>
    pick('listThreads', {}, 'threads', { query })
  return {
    create: ({ agent, ...thread }) => {
      const name = typeof agent === 'object' ? agent.name : agent
      return call('createThread', {}, { json: { ...thread, agent: name } })
    },
    get: (threadId) => call('getThread', { threadId }),
    byClientId: async (clientId) => (await list({ clientId }))[0],
    list: (query = {}) => list(listQuery(query)),
    page: ({ cursor, ...query } = {}) =>
      call('listThreads', {}, { query: { ...listQuery(query), cursor } }),
    view: (threadId, query) => call('getThreadView', { threadId }, { query }),
    update: (threadId, json) => call('updateThread', { threadId }, { json }),
    remove: (threadId) => call('deleteThread', { threadId }),

    send,
    unsend: (threadId, queueId) =>
      isThere(call('unsendMessage', { threadId, queueId }), 'MESSAGE_NOT_FOUND'),
    async run<Data>(
      threadId: ThreadId<Data>,
      message: SendMessage | string,
      options?: { readonly signal?: AbortSignal },
    ) {
      await send(threadId, message)
      return (await settled(threadId, options)) as SessionResult<Data> // typed as the agent declares it
    },
    settled,
    stop: (threadId, json = {}) => call('stopThread', { threadId }, { json }),
    resume: (threadId, json = {}) => call('resumeThread', { threadId }, { json }),
    terminate: (threadId, json = {}) => call('terminateThread', { threadId }, { json }),
    erase: (threadId) => call('eraseThread', { threadId }, { json: {} }),
    fork: (threadId, { isContinued, ...json } = {}) =>
      call('forkThread', { threadId }, { json: { ...json, send: isContinued } }),

    messages: (threadId, query) =>
      pick('listMessages', { threadId }, 'messages', { query: { ...query } }),
    updateMessage: (threadId, messageId, content) =>
      call(
        'updateMessage',
        { threadId, messageId },
        {
          json: typeof content === 'string' ? { text: content } : { message: content },
        },
      ),
    deleteMessage: (threadId, messageId) => call('deleteMessage', { threadId, messageId }),
    children: (threadId) => pick('listSubagents', { threadId }, 'subagents'),
    events: (threadId, query) => pick('listEvents', { threadId }, 'events', { query }),
    document: (threadId) => call('exportThread', { threadId }, { query: { format: 'thread' } }),
    async html(threadId) {
      const query = { format: 'html' }
      return (await requester.send('exportThread', { threadId }, { query })).text()
    },
    async export(threadId) {
      const response = await requester.send(
        'exportThread',
        { threadId },
        {
          query: { format: 'jsonl' },
        },
      )
      return response.text()
    },
    async *exportLines(threadId) {
      const query = { format: 'jsonl' }
      const response = await requester.send('exportThread', { threadId }, { query })
      const decoder = new TextDecoder()
      for await (const part of response.body ?? []) yield decoder.decode(part, { stream: true })
    },
    import: (lines) =>
      call('importThread', {}, { body: lines, headers: { 'content-type': 'application/jsonl' } }),

    logs: (threadId) => pick('listLogs', { threadId }, 'logs'),
    failures: (threadId) => pick('listFailures', { threadId }, 'failures'),
    log: (threadId, logId) => call('getLog', { threadId, logId }),
    cost: (threadId) => call('getCost', { threadId }),
    audit: (threadId) => call('getAudit', { threadId }),
    auditPage: (threadId, { limit = 500, cursor } = {}) =>
      call('getAudit', { threadId }, { query: { limit, cursor } }),

    files: filesOf(requester),
    grants: {
      list: (threadId) => pick('listGrants', { threadId }, 'grants'),
      all: (query) => pick('listAllGrants', {}, 'grants', { query }),
      make: (threadId, json) => call('makeGrant', { threadId }, { json }),
      revoke: (threadId, grantId) => call('revokeGrant', { threadId, grantId }),
    },
    values: valuesOf(requester),
    env: envOf(requester),
    variables: variablesOf(requester),
    effects: effectsOf(requester),
  }
}

type Query = Readonly<Record<string, string | number | boolean | undefined>>

function filesOf({ call, pick, send }: Requester): Omit<ThreadFiles, 'move'> {
  /**
   * Returns the path parameters of a file. Its path begins with a slash in the thread, but not in an address.
   */
  const at = (threadId: string, name: string) => ({ threadId, path: name.replace(/^\//, '') })
  const list: ThreadFiles['list'] = (threadId, prefix) =>
    pick('listFiles', { threadId }, 'files', { query: { prefix } })
  const stat: ThreadFiles['stat'] = async (threadId, name) =>
    (await list(threadId, name)).find((file) => file.path === name)
  return {
    list,
    stat,
    async read(threadId, name) {
      const response = await send('readFile', at(threadId, name))
      const bytes = new Uint8Array(await response.arrayBuffer())
      const fileStat = await stat(threadId, name)
      if (fileStat) return { stat: fileStat, bytes }
      throw new ClientError(`The file "${name}" was removed while it was being read.`, {
        code: 'FILE_NOT_FOUND',
        status: 404,
      })
    },
    write: (threadId, name, body, { mediaType = 'application/octet-stream' } = {}) =>
      call('writeFile', at(threadId, name), { body, headers: { 'content-type': mediaType } }),
    remove: (threadId, name) => isThere(call('deleteFile', at(threadId, name)), 'FILE_NOT_FOUND'),
  }
}

function valuesOf({ call, pick }: Requester): ThreadValues {
  return {
    list: (threadId, prefix) => pick('listValues', { threadId }, 'values', { query: { prefix } }),
    get: (threadId, key) =>
      ifValue(pick<'getValue', JsonValue>('getValue', { threadId, key }, 'value')),
    set: (threadId, key, value) =>
      value === null
        ? call('deleteValue', { threadId, key })
        : call('setValue', { threadId, key }, { json: { value } }),
  }
}

/** The functions of `runtime.users.values`. They take only the name of the user: the API key names the tenant. */
export type ClientUserValues = {
  readonly [Name in keyof UserValues]: UserValues[Name] extends (
    of: never,
    ...rest: infer Rest
  ) => infer Result
    ? (user: string, ...rest: Rest) => Result
    : never
}

/** Creates the functions for the JSON values that are kept per user, for all threads. */
export function userValuesOf({ call, pick }: Requester): ClientUserValues {
  return {
    list: (user, prefix) => pick('listUserValues', { user }, 'values', { query: { prefix } }),
    get: (user, key) => ifValue(call('getUserValue', { user, key })),
    set: (user, key, value, { expectVersion } = {}) =>
      value !== null
        ? call('setUserValue', { user, key }, { json: { value, expectVersion } })
        : // A query parameter cannot be null, so it is sent as 0: no value has the version 0.
          call(
            'deleteUserValue',
            { user, key },
            { query: { expectVersion: expectVersion === null ? 0 : expectVersion } },
          ),
    erase: (user) => pick('eraseUserValues', { user }, 'erased'),
  }
}

/** Resolves to undefined if there is no such value. */
async function ifValue<T>(value: Promise<T>): Promise<T | undefined> {
  try {
    return await value
  } catch (error) {
    if (error instanceof ClientError && error.code === 'VALUE_NOT_FOUND') return undefined
    throw error
  }
}

function envOf({ call, pick }: Requester): ThreadEnv {
  return {
    list: (threadId) => pick('listEnv', { threadId }, 'variables'),
    set: (threadId, name, value, options) =>
      value === null
        ? call('deleteEnv', { threadId, name })
        : call('setEnv', { threadId, name }, { json: { value, ...options } }),
  }
}

function variablesOf({ call }: Requester): ThreadVariables {
  return {
    get: (threadId, requestId) => call('getVariablesRequest', { threadId, requestId }),
    provide: (threadId, requestId, values) =>
      call('provideVariables', { threadId, requestId }, { json: values }),
  }
}

function effectsOf({ call, pick }: Requester): ThreadEffects {
  return {
    list: (threadId) => pick('listEffects', { threadId }, 'effects'),
    schedule: (threadId, name, args, when) => {
      const schedule = typeof when === 'number' ? { delayMs: when } : when
      return pick('scheduleEffect', { threadId }, 'id', { json: { name, args, ...schedule } })
    },
    runNow: (threadId, effectId) => call('runEffect', { threadId, effectId }, { json: {} }),
    remove: (threadId, effectId) =>
      isThere(call('deleteEffect', { threadId, effectId }), 'EFFECT_NOT_FOUND'),
  }
}
