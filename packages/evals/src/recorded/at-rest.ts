import type { RuntimeEvent } from '@skein/runtime'
import { threadTree } from './facts-of.ts'
import type { RecordedThread } from './recorded-thread.ts'

/** Events after which a thread that rests still rests. */
const QUIET: ReadonlySet<RuntimeEvent['type']> = new Set([
  'thread_updated',
  'value_set',
  'env_set',
  'file_written',
  'file_removed',
  'custom_event',
  'source_added',
  'subagent_updated',
  'message_unqueued',
  'grant_made',
  'grant_revoked',
])

/** Whether every thread of a tree had nothing left to do when its log ended. Otherwise a played run continues after the log. */
export function isAtRest(recorded: RecordedThread): boolean {
  return [...threadTree(recorded)].every(({ events }) => {
    const last = events.findLast(({ event }) => !QUIET.has(event.type))?.event
    return (
      last?.type === 'thread_terminated' ||
      (last?.type === 'status_changed' && last.status !== 'running' && last.status !== 'stopping')
    )
  })
}
