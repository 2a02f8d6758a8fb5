import type { UnknownThreadEvent } from '@skein/threads'
import { headOf, type ApiContext } from './api-context.ts'
import { AUDIT_PAGE, MOST_AUDIT_LINES, auditOf } from './audit-pages.ts'
import { costReport } from './cost-report.ts'
import { decodeCursor, encodeCursor } from '../contract/cursor.ts'
import { RuntimeError } from '../contract/error.ts'
import type { Threads } from '../contract/threads.ts'
import { wholeAudit } from '../governance/audit-export.ts'
import { modelLogs, rebuildRequest } from '../model/read-log.ts'

/** Creates the functions that read the whole log of a thread. */
export function logsApi(
  context: ApiContext,
): Pick<Threads, 'events' | 'folded' | 'document' | 'logs' | 'failures' | 'log' | 'cost' | 'audit' | 'auditPage'> {
  const { store } = context
  const events: Threads['events'] = async (threadId, options) => {
    await headOf(context, threadId) // rejects when there is no such thread
    return store.events(threadId, options)
  }
  return {
    events,
    async folded(threadId) {
      const log = (await events(threadId)).map(({ event }) => event)
      const { foldThread } = await import('@skein/threads')
      return foldThread(log as unknown as Iterable<UnknownThreadEvent>) // every event is plain JSON
    },
    async document(threadId) {
      const log = await events(threadId)
      const { isThreadEvent } = await import('@skein/threads')
      const { threadFromEvents } = await import('@skein/threads/events')
      // The runtime's own events are internal and not part of the document.
      const history = log.flatMap(({ event }) => (isThreadEvent(event) ? [event] : []))
      return threadFromEvents(history, { includeRunning: true }).value
    },
    logs: async (threadId) => modelLogs(await events(threadId)),
    failures: async (threadId) =>
      (await events(threadId)).flatMap(({ event }) => {
        if (event.type !== 'tool_execution_end' || !event.cause) return []
        const { toolCallId, toolName, at, cause } = event
        return [{ toolCallId, toolName, at, ...cause }]
      }),
    log: async (threadId, logId) =>
      rebuildRequest(await events(threadId), logId, (hash) => store.blob(hash)),
    cost: (threadId) => costReport(context, threadId),
    async audit(threadId) {
      const { reader, rootId } = await auditOf(context, threadId)
      return wholeAudit(reader, rootId)
    },
    async auditPage(threadId, { cursor, limit = AUDIT_PAGE } = {}) {
      const { reader, rootId } = await auditOf(context, threadId)
      const [tree, from] =
        cursor === undefined
          ? [rootId, 0]
          : decodeCursor<[string, number]>(cursor, ['string', 'number'], 'an audit log')
      if (tree !== rootId || !Number.isSafeInteger(from) || from < 0)
        throw new RuntimeError('The cursor is of another audit log.', {
          code: 'INPUT_INVALID',
          hint: 'Pass the `nextCursor` of the page before, or none to begin.',
        })
      const count = Math.min(Math.max(Math.trunc(limit), 1), MOST_AUDIT_LINES)
      const { next, ...page } = await reader.page(rootId, { from, limit: count })
      return { ...page, nextCursor: next === undefined ? undefined : encodeCursor([rootId, next]) }
    },
  }
}
