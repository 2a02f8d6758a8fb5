import { createApiContext, headOf, load, type ApiEnvironment } from './api-context.ts'
import { effectsApi } from './effects-api.ts'
import { envApi } from './env-api.ts'
import { filesApi } from './files-api.ts'
import { valuesApi } from './values-api.ts'
import { eraseThread } from './erase-thread.ts'
import { removeThread } from './remove-thread.ts'
import { resumeThread, stopThread, terminateThread } from './control.ts'
import { createThread } from './create-thread.ts'
import { forkStoredThread } from './fork-thread.ts'
import { editThread } from './edit-thread.ts'
import { grantsApi } from './grants-api.ts'
import { exportLines } from './export-thread.ts'
import { importThread } from './import-thread.ts'
import { checkLabel, checkTags } from './labels.ts'
import { logsApi } from './logs-api.ts'
import { messagesApi } from './messages-api.ts'
import { sendMessage } from './send-message.ts'
import { unsendMessage } from './unsend-message.ts'
import { changedThreads } from './thread-changes.ts'
import { runThread, settledThread } from './session-result.ts'
import { infoOf, threadInfos } from './thread-info.ts'
import { variablesApi } from './variables-api.ts'
import type { Threads } from '../contract/threads.ts'
import { childRegistry } from '../thread/facade.ts'

/** Creates the API of threads: everything that can be done with threads from outside. */
export function createThreads(environment: ApiEnvironment): Threads {
  const context = createApiContext(environment)
  const { store } = context
  return {
    create: async (thread) => infoOf(context, await createThread(context, thread)),
    get: (threadId) => infoOf(context, threadId),
    head: (threadId) => headOf(context, threadId),
    async byClientId(tenant, clientId, owner) {
      const head = await store.headByClientId(tenant, clientId, owner)
      return head && (await threadInfos(context, [head]))[0]
    },
    list: async (query = {}) => threadInfos(context, await store.list(query)),
    changes: (query) => changedThreads(context, query),
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
    run: runThread.bind(undefined, context) as Threads['run'], // the type of the data is that of the agent's output
    settled: (threadId, options) => settledThread(context, threadId, options),
    stop: (threadId, options) => stopThread(context, threadId, options),
    resume: (threadId, options) => resumeThread(context, threadId, options),
    terminate: (threadId, options) => terminateThread(context, threadId, options),
    erase: (threadId, options) => eraseThread(context, threadId, options),
    remove: (threadId) => removeThread(context, threadId),
    ...messagesApi(context),
    children: async (threadId, options) =>
      childRegistry((await load(context, threadId)).state, options),
    async export(threadId) {
      const parts: string[] = []
      for await (const part of exportLines(context, threadId)) parts.push(part)
      return parts.join('')
    },
    exportLines: (threadId) => exportLines(context, threadId),
    import: async (lines, options) =>
      infoOf(context, (await importThread(context, lines, options)).id),
    async fork(threadId, options) {
      const { head, runsAgain } = await forkStoredThread(context, threadId, options)
      return { ...(await infoOf(context, head.id)), runsAgain }
    },
    files: filesApi(context),
    values: valuesApi(context),
    env: envApi(context),
    variables: variablesApi(context),
    effects: effectsApi(context),
    grants: grantsApi(context),
    ...logsApi(context),
  }
}
