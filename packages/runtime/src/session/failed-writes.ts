import type { JsonValue } from '@skein/base'
import type { Undo, UndoStatus } from '@skein/governance'
import type { DrainContext } from '../context/drain-context.ts'
import type { RuntimeEvent, WriteLeft } from '../contract/event.ts'
import type { ThreadChange } from '../store/commit.ts'
import type { FailedWrite } from '../governance/session-governor.ts'

/** How many writes the result of a session names; the audit log has all of them. */
const MOST_NAMED = 50

/** Says what became of each write of a session that failed, the last one first; empty without writes. */
export function textOfWrites(agent: string, writes: readonly FailedWrite[]): string {
  if (writes.length === 0) return ''
  const lines = writes.slice(0, MOST_NAMED).map((write) => {
    const whose = write.agent === agent ? '' : ` of ${write.agent}`
    return `- "${write.tool}"${whose}: ${STATUS_TEXT[write.status]}${write.error === undefined ? '' : ` (${write.error})`}.`
  })
  const unlisted = writes.length - lines.length
  if (unlisted > 0) lines.push(`- ${unlisted} more, which the audit log names.`)
  return ['What became of its writes, the last one first:', ...lines].join('\n')
}

const STATUS_TEXT: Readonly<Record<UndoStatus, string>> = {
  done: 'undone',
  failed: 'not undone, because undoing it failed; a person was asked',
  skipped: 'not undone, because its tool declares no rollback',
  manual: 'not undone; a person was asked to undo it',
  impossible: 'not undone, because it cannot be undone; a person was notified',
  in_doubt: 'it is unknown whether it happened, so it was not undone; a person was asked',
  unknown: 'it is unknown whether it was undone; a person was asked',
}

/** Returns the questions about writes that were not undone, for the inbox. */
export function questionsAbout(
  context: Pick<DrainContext, 'environment' | 'at'>,
  writes: readonly FailedWrite[],
): RuntimeEvent[] {
  const at = context.at()
  return writes.flatMap((write): RuntimeEvent[] => {
    const { isOwn, status, threadId, request_id: requestId, call, tool: toolName, agent } = write
    const why = QUESTION[status]
    if (!isOwn || why === undefined) return []
    const id = context.environment.ids()
    const rest: WriteLeft = {
      threadId,
      requestId,
      call,
      toolName,
      arguments: write.arguments,
      status,
    }
    const question = `${agent} failed, so its write "${toolName}" has to be undone. ${why}`
    const request = {
      type: 'in_doubt',
      tool: toolName,
      arguments: write.arguments,
      agent,
      undo: status,
      question,
      choices: ['applied', 'absent', 'unknown'],
    } satisfies JsonValue
    // The question is about no open call, so it has an id of its own in place of a call's.
    const interrupt = { id, toolCallId: id, kind: 'in_doubt', request } as const
    return [{ type: 'interrupt_opened', at, turnId: '', interrupt, write: rest }]
  })
}

const QUESTION: Readonly<Record<UndoStatus, string | undefined>> = {
  done: undefined,
  skipped: undefined,
  failed:
    'Its rollback failed. Does the write still have its effect? Undo it by hand if it must go.',
  manual: 'Only a person can do that. Does the write still have its effect?',
  impossible: 'It cannot be undone. Does the write still have its effect?',
  in_doubt:
    'Nobody knows whether it happened. Did it take effect? If it did ("applied"), it is undone now.',
  unknown: 'Its rollback was cut off. Does the write still have its effect?',
}

/** Returns the events that say in the log of each thread what became of its writes. */
export async function undoneEvents(
  context: Pick<DrainContext, 'environment' | 'head' | 'at'>,
  writes: readonly (Pick<FailedWrite, 'threadId' | 'tool'> & Undo)[],
): Promise<{ readonly own: readonly RuntimeEvent[]; readonly others: readonly ThreadChange[] }> {
  const { environment, head } = context
  const at = context.at()
  const byThread = new Map<string, RuntimeEvent[]>()
  for (const { threadId, request_id: requestId, call, tool: toolName, status, error } of writes) {
    if (status === 'skipped') continue
    const event = { type: 'write_undone', at, requestId, call, toolName, status } as const
    const events = byThread.get(threadId) ?? []
    events.push(error === undefined ? event : { ...event, error })
    byThread.set(threadId, events)
  }
  const own = byThread.get(head.id) ?? []
  byThread.delete(head.id)
  const others: ThreadChange[] = []
  for (const [id, append] of byThread) {
    const other = await environment.store.head(id)
    if (other && other.lifecycle !== 'erased') others.push({ id, append })
  }
  return { own, others }
}
