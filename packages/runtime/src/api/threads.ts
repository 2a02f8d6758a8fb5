import { RuntimeError } from '../error.ts'
import type { RuntimeEvent } from '../event.ts'
import type { CostReport, Threads } from '../runtime-api.ts'
import { childRegistry } from '../services/child-registry.ts'
import {
  type ApiContext,
  type ApiEnvironment,
  checkLabel,
  checkTags,
  createApiContext,
  editThread,
  headOf,
  load,
} from './api-context.ts'
import { eraseThread, removeThread, resumeThread, stopThread, terminateThread } from './control.ts'
import { createThread } from './create-thread.ts'
import { effectsApi, envApi, filesApi, valuesApi } from './contents-api.ts'
import { exportThread, importThread } from './import-thread.ts'
import { forkThread } from './fork-thread.ts'
import { messagesApi } from './messages-api.ts'
import { sendMessage, unsendMessage } from './send-message.ts'
import { runThread, settledThread } from './session-result.ts'
import { variablesApi } from './variables-api.ts'
import {
  foldThread,
  isThreadEvent,
  type Thread,
  type ThreadState,
  type UnknownThreadEvent,
} from '@skein/threads'
import { threadFromEvents } from '@skein/threads/events'
import { modelLogs, rebuildRequest } from '../services/model-log.ts'
import type { JsonObject } from '@skein/base'
import { descendantsOf } from '../store/descendants.ts'

/** Everything that can be done with threads from outside of them. */
export function createThreads(environment: ApiEnvironment): Threads {
  const context = createApiContext(environment)
  const { store } = context
  return {
    create: (thread) => createThread(context, thread),
    get: (threadId) => headOf(context, threadId),
    byClientId: (tenant, clientId) => store.headByClientId(tenant, clientId),
    list: (query = {}) => store.list(query),
    update: (threadId, change) => updateThread(context, threadId, change),
    send: (threadId, message) => sendMessage(context, threadId, message),
    unsend: (threadId, queueId) => unsendMessage(context, threadId, queueId),
    run: (threadId, message, options) => runThread(context, threadId, message, options),
    settled: (threadId, options) => settledThread(context, threadId, options),
    stop: (threadId, options) => stopThread(context, threadId, options),
    resume: (threadId, options) => resumeThread(context, threadId, options),
    terminate: (threadId, options) => terminateThread(context, threadId, options),
    erase: (threadId, options) => eraseThread(context, threadId, options),
    remove: (threadId) => removeThread(context, threadId),
    ...messagesApi(context),
    children: async (threadId) => childRegistry((await load(context, threadId)).state),
    async events(threadId, options) {
      await headOf(context, threadId)
      return store.events(threadId, options)
    },
    folded: (threadId) => foldedThread(context, threadId),
    document: (threadId) => documentOf(context, threadId),
    export: (threadId) => exportThread(context, threadId),
    import: (lines, options) => importThread(context, lines, options),
    fork: (threadId, options) => forkThread(context, threadId, options),
    files: filesApi(context),
    values: valuesApi(context),
    env: envApi(context),
    variables: variablesApi(context),
    effects: effectsApi(context),
    ...logsApi(context),
    cost: (threadId) => costOf(context, threadId),
    audit: (threadId) => auditOf(context, threadId),
  }
}

async function updateThread(
  context: ApiContext,
  threadId: string,
  { title, tags }: Parameters<Threads['update']>[1],
): ReturnType<Threads['update']> {
  if (title !== undefined) checkLabel(title, 'The title of the thread')
  if (tags !== undefined) checkTags(tags)
  const isEmpty = title === undefined && tags === undefined
  await editThread(context, { threadId, point: 'update_thread' }, () => {
    if (isEmpty) return { result: undefined }
    const event: RuntimeEvent | undefined =
      title === undefined ? undefined : { type: 'thread_updated', at: context.at(), title }
    const head = { ...(title !== undefined && { title }), ...(tags && { tags: [...tags] }) }
    return { result: undefined, change: { ...(event && { append: [event] }), head } }
  })
  return headOf(context, threadId)
}

async function auditOf(context: ApiContext, threadId: string): ReturnType<Threads['audit']> {
  const { rootId } = await headOf(context, threadId)
  if (context.audit) return context.audit(rootId)
  throw new RuntimeError(`There is no audit log of thread ${threadId}.`, {
    code: 'LOG_NOT_FOUND',
    hint: 'This runtime was made without governance.',
  })
}

/** The thread as a ThreadProtocol document. The runtime's own events are its machinery, not its history. */
async function documentOf(context: ApiContext, threadId: string): Promise<Thread> {
  const events = await eventsOf(context, threadId)
  const history = events.flatMap((event) => (isThreadEvent(event) ? [event] : []))
  return threadFromEvents(history, { includeRunning: true }).value
}

/** The fold of the whole log, as whoever subscribes to the thread gets it. */
async function foldedThread(context: ApiContext, threadId: string): Promise<ThreadState> {
  const events = await eventsOf(context, threadId)
  return foldThread(events as unknown as Iterable<UnknownThreadEvent>) // known ones too are plain JSON
}

async function eventsOf(context: ApiContext, threadId: string): Promise<readonly RuntimeEvent[]> {
  await headOf(context, threadId)
  return (await context.store.events(threadId)).map(({ event }) => event)
}

/** Requests to models, as the log of a thread has them. */
function logsApi(context: ApiContext): Pick<Threads, 'logs' | 'log'> {
  const { store } = context
  const eventsOf = async (threadId: string) => {
    await headOf(context, threadId)
    return store.events(threadId)
  }
  return {
    logs: async (threadId) => modelLogs(await eventsOf(threadId)),
    log: async (threadId, logId) =>
      rebuildRequest(await eventsOf(threadId), logId, (hash) => store.blob(hash)),
  }
}

interface Sum {
  tokens: number
  costUsd: number
}

/** What a thread and its descendants have spent on models. */
async function costOf(context: ApiContext, threadId: string): Promise<CostReport> {
  const head = await headOf(context, threadId)
  const total: Sum = { tokens: 0, costUsd: 0 }
  const byModel: Record<string, Sum & { calls: number }> = {}
  const byThread: Record<string, Sum & { agent: string }> = {}
  for (const { id, agent } of [head, ...(await descendantsOf(context, head))]) {
    const own = { agent, tokens: 0, costUsd: 0 }
    byThread[id] = own
    const events = await context.store.events(id)
    // Summaries, first instructions, failed requests: spent without a message to show for it.
    for (const { event } of events) {
      if (event.type !== 'usage_recorded') continue
      for (const part of [total, own]) {
        part.tokens += tokensOf(event.usage as JsonObject)
        part.costUsd += event.costUsd ?? 0
      }
    }
    for (const { provider, model, usage, costUsd = 0 } of modelLogs(events)) {
      const sum = (byModel[`${provider}/${model}`] ??= { tokens: 0, costUsd: 0, calls: 0 })
      sum.calls++
      for (const part of [total, own, sum]) {
        part.tokens += tokensOf(usage)
        part.costUsd += costUsd
      }
    }
  }
  return { threadId, ...total, byModel, byThread }
}

/** Thinking and cached tokens are parts of these two. */
function tokensOf(usage: JsonObject | undefined): number {
  return Number(usage?.['input_tokens'] ?? 0) + Number(usage?.['output_tokens'] ?? 0)
}
