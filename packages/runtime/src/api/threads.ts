import { RuntimeError } from '../contract/error.ts'
import type { CostReport, CostUsd, Threads } from '../contract/runtime-api.ts'
import { childRegistry } from '../thread/facade.ts'
import {
  type ApiContext,
  type ApiEnvironment,
  checkLabel,
  checkTags,
  createApiContext,
  editThread,
  headOf,
  infoOf,
  load,
  threadInfos,
} from './api-context.ts'
import { eraseThread, removeThread, resumeThread, stopThread, terminateThread } from './control.ts'
import { createThread } from './create-thread.ts'
import { effectsApi, envApi, filesApi, valuesApi } from './contents-api.ts'
import { exportThread, importThread } from './import-thread.ts'
import { forkStoredThread } from './fork-thread.ts'
import { messagesApi, sendMessage, unsendMessage } from './messages-api.ts'
import { runThread, settledThread } from './session-result.ts'
import { variablesApi } from './variables-api.ts'
import { foldThread, isThreadEvent, type UnknownThreadEvent } from '@skein/threads'
import { threadFromEvents } from '@skein/threads/events'
import { modelLogs, rebuildRequest } from '../model/log.ts'
import type { JsonObject } from '@skein/base'
import { descendantsOf } from '../store/thread-head.ts'

/** Creates the API of threads: everything that can be done with threads from outside. */
export function createThreads(environment: ApiEnvironment): Threads {
  const context = createApiContext(environment)
  const { store } = context
  return {
    create: async (thread) => infoOf(context, await createThread(context, thread)),
    get: (threadId) => infoOf(context, threadId),
    async byClientId(tenant, clientId, owner) {
      const head = await store.headByClientId(tenant, clientId, owner)
      return head && (await threadInfos(context, [head]))[0]
    },
    list: async (query = {}) => threadInfos(context, await store.list(query)),
    totals: () => store.totals(),
    async update(threadId, { title, tags }) {
      if (title !== undefined) checkLabel(title, 'The title of the thread')
      if (tags !== undefined) checkTags(tags)
      await editThread(context, { threadId, point: 'update_thread' }, () => {
        if (title === undefined && tags === undefined) return { result: undefined }
        const at = context.at()
        const append = title === undefined ? [] : [{ type: 'thread_updated', at, title } as const]
        const head: { title?: string; tags?: readonly string[] } = {}
        if (title !== undefined) head.title = title
        if (tags !== undefined) head.tags = [...tags]
        return { result: undefined, change: { append, head } }
      })
      return infoOf(context, threadId)
    },
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
    export: (threadId) => exportThread(context, threadId),
    import: async (lines, options) =>
      infoOf(context, (await importThread(context, lines, options)).id),
    fork: async (threadId, options) =>
      infoOf(context, (await forkStoredThread(context, threadId, options)).id),
    files: filesApi(context),
    values: valuesApi(context),
    env: envApi(context),
    variables: variablesApi(context),
    effects: effectsApi(context),
    ...logsApi(context),
  }
}

/** Creates the functions that read the whole log of a thread. */
function logsApi(
  context: ApiContext,
): Pick<Threads, 'events' | 'folded' | 'document' | 'logs' | 'log' | 'cost' | 'audit'> {
  const { store, audit } = context
  const events: Threads['events'] = async (threadId, options) => {
    await headOf(context, threadId) // rejects when there is no such thread
    return store.events(threadId, options)
  }
  return {
    events,
    async folded(threadId) {
      const log = (await events(threadId)).map(({ event }) => event)
      return foldThread(log as unknown as Iterable<UnknownThreadEvent>) // every event is plain JSON
    },
    async document(threadId) {
      const log = await events(threadId)
      // The runtime's own events are internal and not part of the document.
      const history = log.flatMap(({ event }) => (isThreadEvent(event) ? [event] : []))
      return threadFromEvents(history, { includeRunning: true }).value
    },
    logs: async (threadId) => modelLogs(await events(threadId)),
    log: async (threadId, logId) =>
      rebuildRequest(await events(threadId), logId, (hash) => store.blob(hash)),
    cost: (threadId) => costOf(context, threadId),
    async audit(threadId) {
      const { rootId } = await headOf(context, threadId)
      if (audit) return audit(rootId)
      throw new RuntimeError(`There is no audit log of thread ${threadId}.`, {
        code: 'LOG_NOT_FOUND',
        hint: 'This runtime was created without governance.',
      })
    },
  }
}

/** Sums what a thread and its descendants have spent on models. */
async function costOf(context: ApiContext, threadId: string): Promise<CostReport> {
  const head = await headOf(context, threadId)
  const total: Spent = { tokens: 0, costUsd: 0 }
  const byModel: Record<string, Spent & { calls: number }> = {}
  const byThread: Record<string, Spent & { agent: string }> = {}
  for (const { id, agent } of [head, ...(await descendantsOf(context, head))]) {
    const own = (byThread[id] = { agent, tokens: 0, costUsd: 0 })
    const add = (
      usage: JsonObject | undefined,
      costUsd: CostUsd | undefined,
      ...sums: Spent[]
    ): void => {
      // Reasoning and cached tokens are already included in `input_tokens` and `output_tokens`.
      const tokens = Number(usage?.['input_tokens'] ?? 0) + Number(usage?.['output_tokens'] ?? 0)
      for (const sum of [total, own, ...sums]) {
        sum.tokens += tokens
        // One unknown cost makes the sum unknown.
        sum.costUsd = sum.costUsd === null || costUsd == null ? null : sum.costUsd + costUsd
      }
    }
    const log = await context.store.events(id)
    // Summaries, first instructions and failed requests have costs but no message.
    for (const { event } of log)
      if (event.type === 'usage_recorded') add(event.usage as JsonObject, event.costUsd)
    for (const { provider, model, usage, costUsd } of modelLogs(log)) {
      const sum = (byModel[`${provider}/${model}`] ??= { tokens: 0, costUsd: 0, calls: 0 })
      sum.calls++
      // A request that failed before it used anything, or was not answered yet, costs nothing.
      add(usage, usage === undefined ? 0 : costUsd, sum)
    }
  }
  return { threadId, ...total, byModel, byThread }
}

interface Spent {
  tokens: number
  costUsd: CostUsd
}
