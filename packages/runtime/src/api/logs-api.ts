import type { Threads } from '../runtime-api.ts'
import { modelLogs, rebuildRequest } from '../model/log.ts'
import { headOf, type ApiContext } from './api-context.ts'

/** Requests to models, as the log of a thread has them. */
export function logsApi(context: ApiContext): Pick<Threads, 'logs' | 'log'> {
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
