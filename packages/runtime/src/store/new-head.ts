import type { NewThread } from './commit.ts'
import type { ThreadHead } from './head.ts'
import { labelText } from './storable-text.ts'
import type { StoreRow } from './store.ts'

/** Creates the head of a thread that has no events yet. */
export function newHead(id: string, thread: NewThread, logId: number, change: number): ThreadHead {
  const { tenant, owner, agent, parentId, rootId, title, tags, clientId, createdAt } = thread
  return {
    id,
    tenant,
    owner,
    agent,
    parentId,
    rootId,
    title: title === null ? null : labelText(title),
    firstWords: null,
    forkedFrom: null,
    tags: tags.map(labelText),
    tools: [],
    grantedUntil: null,
    clientId,
    lifecycle: 'idle',
    waiting: 0,
    tokens: 0,
    outputTokens: 0,
    cachedTokens: 0,
    costUsd: 0,
    unpriced: 0,
    createdAt,
    updatedAt: createdAt,
    seq: 0,
    change,
    logId,
    epoch: 0,
    wakeAt: null,
    attempts: 0,
    lease: null,
  }
}

type StoredHead = Extract<StoreRow, { type: 'thread' }>['head']

/** Completes a thread from an older store or backup: fields that it lacks, because they are newer, get defaults. */
export function completeHead(head: StoredHead): StoredHead {
  const defaults: Partial<StoredHead> = {
    owner: null,
    parentId: null,
    title: null,
    tags: [],
    clientId: null,
  }
  const first = { ...defaults, ...head }
  const { logId: _, lease: __, ...made } = newHead(head.id, first, 0, 0)
  return { ...made, ...head }
}
