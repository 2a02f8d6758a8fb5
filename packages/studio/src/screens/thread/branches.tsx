import { useMemo, type ReactNode } from 'react'
import { ChevronLeft, ChevronRight } from '../../icons/lucide.ts'
import { To } from '../../parts/link.tsx'
import { useStore } from '../../state/store.ts'
import { useResource } from '../../state/resource.ts'
import { useStudio } from '../../state/studio.ts'
import type { ShownThread } from '../../state/tree.ts'

/** The threads that part at one message. */
export interface Branches {
  readonly ids: readonly string[]
  readonly index: number
}

/** Returns the branches of a thread (its forks, its origin, its siblings), by the message at which they part. */
export function useBranches(thread: ShownThread): ReadonlyMap<string, Branches> {
  const { client, lists } = useStudio()
  const { threadId, events, view } = thread
  const threads = useStore(lists.threads).items
  // The list of threads is live, so a new fork changes this count and loads the branches again.
  const forks = threads.filter(({ forkedFrom }) => forkedFrom).length
  const family = useResource(
    view.parentThreadId === undefined ? `branches ${threadId} ${forks}` : undefined,
    async () => {
      const { forkedFrom } = await client.threads.get(threadId)
      const [own, siblings] = await Promise.all([
        client.threads.list({ forkedFrom: threadId, sort: 'oldest' }),
        forkedFrom ? client.threads.list({ forkedFrom: forkedFrom.threadId, sort: 'oldest' }) : [],
      ])
      return { forkedFrom, own, siblings }
    },
  ).value
  return useMemo(() => {
    const branches = new Map<string, Branches>()
    if (!family) return branches
    const place = (messageId: string | null): string | undefined => {
      const after = events.find(
        ({ event }) => event.type === 'message_added' && event.message.id === messageId,
      )
      const messages = view.items.filter((item) => item.type === 'message')
      const next = messages.find(
        ({ id }) => (thread.facts.messages.get(id)?.seq ?? 0) > (after?.seq ?? 0),
      )
      return (next ?? messages.at(-1))?.id
    }
    const add = (messageId: string | null, ids: readonly string[]): void => {
      const at = place(messageId)
      if (at !== undefined && ids.length > 1)
        branches.set(at, { ids, index: Math.max(0, ids.indexOf(threadId)) })
    }
    for (const messageId of new Set(family.own.map(({ forkedFrom }) => forkedFrom!.messageId)))
      add(messageId, [
        threadId,
        ...family.own.filter((one) => one.forkedFrom!.messageId === messageId).map(({ id }) => id),
      ])
    const { forkedFrom } = family
    if (forkedFrom)
      add(forkedFrom.messageId, [
        forkedFrom.threadId,
        ...family.siblings
          .filter((one) => one.forkedFrom!.messageId === forkedFrom.messageId)
          .map(({ id }) => id),
      ])
    return branches
  }, [family, events, view.items, thread.facts, threadId])
}

/** Buttons `‹ 2/3 ›` on the message at which branches part, with a link to compare the branches. */
export function BranchPicker({
  branches: { ids, index },
}: {
  readonly branches: Branches
}): ReactNode {
  const { length } = ids
  const at = (step: number): string => ids[(index + step + length) % length]!
  return (
    <span className="branches small" role="group" aria-label="Branches">
      <To
        className="btn quiet icon tiny"
        aria-label="The branch before"
        address={{ screen: 'thread', threadId: at(-1) }}
      >
        <ChevronLeft size={14} aria-hidden />
      </To>
      <span className="num soft">
        {index + 1}/{length}
      </span>
      <To
        className="btn quiet icon tiny"
        aria-label="The next branch"
        address={{ screen: 'thread', threadId: at(1) }}
      >
        <ChevronRight size={14} aria-hidden />
      </To>
      <To
        className="link"
        address={{ screen: 'thread', threadId: ids[index]!, with: index === 0 ? at(1) : ids[0]! }}
      >
        Compare
      </To>
    </span>
  )
}
