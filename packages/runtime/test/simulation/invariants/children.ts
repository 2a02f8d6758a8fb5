import type { RuntimeEvent } from '@skein/runtime'
import type { Finished, FinishedThread } from './finished.ts'

/** The end of a child's session reaches its parent once: as the answer of the call, or as one message. */
export function childrenAreHeardOnce(finished: Finished): void {
  for (const child of finished.threads.values()) {
    const parent =
      child.head.parentId === null ? undefined : finished.threads.get(child.head.parentId)
    if (parent) checkChild(finished, parent, child)
  }
}

function checkChild({ world }: Finished, parent: FinishedThread, child: FinishedThread): void {
  const link = child.state.parent
  if (!link) return world.violate(`${child.head.id} does not know its parent`)
  const { answered, queued } = heard(parent, child.head.id)
  const { waiters, untold } = told(child)
  const stuck = child.events.filter(
    (event) => event.type === 'error_raised' && event.code === 'DRAIN_FAILED',
  ).length
  for (const [id, count] of answered)
    if (count > 1 + stuck) world.violate(`${parent.head.id}: ${id} was answered ${count} times`)
  const isParentOver = parent.state.terminated !== undefined
  for (const id of waiters)
    if (!answered.has(id) && !isParentOver && wasOpened(parent, id))
      world.violate(
        `${child.head.id} (${child.head.agent}) ended, and ${id} of its parent was never answered`,
      )
  const expected = link.communication === 'implicit' ? untold : 0
  if (queued > expected + stuck)
    world.violate(
      `${child.head.id} (${child.head.agent}) was heard ${queued} times, and ended ${expected} times`,
    )
  if (queued < expected && !isParentOver)
    world.violate(
      `${child.head.id} (${child.head.agent}) ended ${expected} times, and was heard ${queued} times`,
    )
}

/** Ends of the child, as the parent has them. */
function heard(
  { events }: FinishedThread,
  childId: string,
): { answered: Map<string, number>; queued: number } {
  const answered = new Map<string, number>()
  const own = new Set<string>()
  let queued = 0
  for (const event of events) {
    if (event.type === 'interrupt_opened' && referenceOf(event.interrupt.request) === childId)
      own.add(event.interrupt.id)
    if (event.type === 'interrupt_answered' && own.has(event.interruptId))
      answered.set(event.interruptId, (answered.get(event.interruptId) ?? 0) + 1)
    if (event.type === 'message_queued' && event.subagentId === childId && isReport(event)) queued++
  }
  return { answered, queued }
}

function referenceOf(request: unknown): unknown {
  return (request as { readonly reference?: unknown } | null | undefined)?.reference
}

function isReport({ message }: Extract<RuntimeEvent, { type: 'message_queued' }>): boolean {
  return JSON.stringify(message).includes('has re')
}

/** Ends of the child: those that calls waited for, and those that nobody did. */
function told({ events }: FinishedThread): { waiters: string[]; untold: number } {
  const waiting = new Map<string, string>()
  const all: string[] = []
  let inSession: string[] = []
  let untold = 0
  for (const event of events) {
    if (event.type === 'message_queued' && event.parentInterruptId !== undefined)
      waiting.set(event.queueId, event.parentInterruptId)
    if (event.type === 'session_start') inSession = [...(event.waiters ?? [])]
    if (event.type === 'message_added' && event.queueId !== undefined) {
      const waiter = waiting.get(event.queueId)
      if (waiter !== undefined) inSession.push(waiter)
    }
    if (event.type !== 'session_end' || event.reason === 'handoff') continue
    all.push(...inSession)
    if (inSession.length === 0 && event.outcome !== 'terminated' && !event.isUndelivered) untold++
    inSession = []
  }
  return { waiters: all, untold }
}

function wasOpened({ events }: FinishedThread, id: string): boolean {
  return events.some((event) => event.type === 'interrupt_opened' && event.interrupt.id === id)
}
