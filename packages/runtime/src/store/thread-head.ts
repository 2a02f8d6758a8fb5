import type { HeadPatch, NewThread, ThreadChange, ThreadHead } from './store.ts'

/** The head of a thread that has no events yet. */
export function newHead(id: string, thread: NewThread): ThreadHead {
  const { tenant, owner, agent, parentId, rootId, title, tags, clientId, createdAt } = thread
  return {
    id,
    tenant,
    owner,
    agent,
    parentId,
    rootId,
    title,
    tags: [...tags],
    clientId,
    lifecycle: 'idle',
    waiting: 0,
    tokens: 0,
    costUsd: 0,
    createdAt,
    updatedAt: createdAt,
    seq: 0,
    epoch: 0,
    wakeAt: null,
    attempts: 0,
  }
}

/** A head after a change; the events' numbers are given by the store. */
export function changeHead(head: ThreadHead, change: ThreadChange): ThreadHead {
  const { append = [], head: patch = {}, raisesEpoch, wake } = change
  return {
    ...head,
    ...definedColumns(patch),
    updatedAt: latest(head.updatedAt, append),
    seq: head.seq + append.length,
    epoch: head.epoch + (raisesEpoch ? 1 : 0),
    wakeAt: wake ? nextWake(head.wakeAt, wake) : head.wakeAt,
  }
}

/** The head of a thread whose contents were erased: whose it is and what it cost stays. */
export function erasedHead(head: ThreadHead, skeleton: readonly { at: string }[]): ThreadHead {
  return {
    ...head,
    title: null,
    tags: [],
    lifecycle: 'erased',
    waiting: 0,
    updatedAt: latest(head.updatedAt, skeleton),
    seq: skeleton.length,
    // Whoever works on it must not write what it still remembers.
    epoch: head.epoch + 1,
    wakeAt: null,
    attempts: 0,
  }
}

/** What a search looks through, in lower case. */
export function searchText(head: ThreadHead): string {
  return [head.id, head.title ?? '', head.agent, head.clientId ?? '', ...head.tags]
    .join('\n')
    .toLowerCase()
}

/** Named one by one: nothing else of a patch may reach the head. */
function definedColumns(patch: HeadPatch): HeadPatch {
  const { agent, title, tags, owner, lifecycle, waiting, tokens, costUsd, attempts } = patch
  return {
    ...(agent !== undefined && { agent }),
    ...(title !== undefined && { title }),
    ...(tags !== undefined && { tags: [...tags] }),
    ...(owner !== undefined && { owner }),
    ...(lifecycle !== undefined && { lifecycle }),
    ...(waiting !== undefined && { waiting }),
    ...(tokens !== undefined && { tokens }),
    ...(costUsd !== undefined && { costUsd }),
    ...(attempts !== undefined && { attempts }),
  }
}

function nextWake(before: number | null, wake: NonNullable<ThreadChange['wake']>): number | null {
  if ('exactly' in wake) return wake.exactly
  return before === null ? wake.by : Math.min(before, wake.by)
}

/** Time never goes back, and an event without a readable time does not move it. */
function latest(before: number, events: readonly { readonly at: string }[]): number {
  const times = events.map(({ at }) => Date.parse(at)).filter((time) => time > before)
  return Math.max(before, ...times)
}
