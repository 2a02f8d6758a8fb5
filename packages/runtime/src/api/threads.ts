import { RuntimeError } from '../error.ts'
import type { RuntimeEvent } from '../event.ts'
import type { Threads } from '../runtime-api.ts'
import { childRegistry } from '../thread/facade.ts'
import {
  createApiContext,
  editThread,
  headOf,
  load,
  type ApiContext,
  type ApiEnvironment,
} from './api-context.ts'
import { checkLabel, checkTags } from './check-input.ts'
import { resumeThread, stopThread, terminateThread } from './control.ts'
import { createThread } from './create-thread.ts'
import { documentOf, foldedThread } from './document.ts'
import { effectsApi } from './effects-api.ts'
import { envApi } from './env-api.ts'
import { eraseThread, removeThread } from './erase-thread.ts'
import { exportThread } from './export-thread.ts'
import { filesApi } from './files-api.ts'
import { forkThread } from './fork-thread.ts'
import { importThread } from './import-thread.ts'
import { logsApi } from './logs-api.ts'
import { messagesApi } from './messages-api.ts'
import { sendMessage, unsendMessage } from './send-message.ts'
import { runThread, settledThread } from './session-result.ts'
import { valuesApi } from './values-api.ts'
import { variablesApi } from './variables-api.ts'
import { costOf } from './cost.ts'

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
