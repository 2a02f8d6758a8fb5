import { isPlainObject } from '@skein/base'
import { safeText } from '@skein/base/safe-text'
import type { RuntimeEvent } from '../contract/event.ts'
import { nextTurn } from './next-turn.ts'
import type {
  ClaimOptions,
  HeldThread,
  Lease,
  NewThread,
  Store,
  StoreRow,
  ThreadChange,
  ThreadHead,
  ListPlace,
  ThreadQuery,
} from './store.ts'

/** Creates the head (summary row) of a thread that has no events yet. */
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

/**
 * Returns the head (summary row) after a claim at `now`, by the clock of the store, or who holds the
 * thread. If the lease of another owner expired without a release, that owner counts as dead: the
 * thread is then suspected of it and, if it was working alone (on trial), gets a failed attempt.
 */
export function claimedHead(
  head: ThreadHead,
  { owner, leaseMs, address }: ClaimOptions,
  now: number,
): ThreadHead | HeldThread {
  const { lease } = head
  const isOther = lease !== null && lease.owner !== owner
  if (isOther && lease.until > now)
    return { heldBy: lease.owner, until: lease.until, leftMs: lease.until - now }
  const claimed: Lease = {
    owner,
    until: now + leaseMs,
    deaths: (lease?.deaths ?? 0) + (isOther ? 1 : 0),
    survived: lease?.survived ?? 0,
    isOnTrial: false,
  }
  return {
    ...head,
    epoch: head.epoch + 1,
    attempts: head.attempts + (isOther && lease.isOnTrial ? 1 : 0),
    lease: address === undefined ? claimed : { ...claimed, address },
  }
}

function changeLease(lease: Lease | null, change: ThreadChange['lease']): Lease | null {
  if (!lease || change === undefined) return lease
  switch (change) {
    case 'released':
      return null
    case 'cleared':
      return { ...lease, deaths: 0, survived: 0, isOnTrial: false }
    case 'on_trial':
      return { ...lease, isOnTrial: true }
    case 'survived':
      return { ...lease, survived: lease.survived + 1, isOnTrial: false }
  }
}

/** Returns the head (summary row) after a change. `number` is the position of the change among those of all threads. */
export function changeHead(head: ThreadHead, change: ThreadChange, number: number): ThreadHead {
  const { append = [], head: patch = {}, raisesEpoch, wake } = change
  // Fields are picked one by one, so that a patch can set no other fields. Undefined means unchanged;
  // null is a value.
  const { agent, title, tags, owner, waiting, tokens, costUsd, unpriced, attempts } = patch
  const { outputTokens, cachedTokens } = patch
  return {
    ...head,
    agent: agent ?? head.agent,
    title: title === undefined ? head.title : title === null ? null : labelText(title),
    firstWords: head.firstWords ?? firstWordsIn(append),
    forkedFrom: head.forkedFrom ?? forkIn(append),
    tags: tags ? tags.map(labelText) : head.tags,
    tools: calledTools(head.tools, append),
    grantedUntil: grantEnd(head.grantedUntil, append),
    owner: owner === undefined ? head.owner : owner,
    lifecycle: patch.lifecycle ?? lifecycleAfter(head, change),
    waiting: waiting ?? head.waiting,
    tokens: tokens ?? head.tokens,
    outputTokens: outputTokens ?? head.outputTokens,
    cachedTokens: cachedTokens ?? head.cachedTokens,
    costUsd: costUsd ?? head.costUsd,
    unpriced: unpriced ?? head.unpriced,
    attempts: attempts ?? head.attempts,
    lease: changeLease(head.lease, change.lease),
    updatedAt: latest(head.updatedAt, append),
    seq: head.seq + append.length,
    change: number,
    epoch: head.epoch + (raisesEpoch ? 1 : 0),
    wakeAt: wake
      ? 'exactly' in wake
        ? wake.exactly
        : Math.min(head.wakeAt ?? Infinity, wake.by)
      : head.wakeAt,
  }
}

const FIRST_WORDS = 120

/**
 * Returns the beginning of the first message to a thread, for a list: on one line, without characters
 * that hide or reorder others. Null if the events have no such message.
 */
function firstWordsIn(events: readonly RuntimeEvent[]): string | null {
  for (const event of events) {
    if (event.type !== 'message_queued' && event.type !== 'message_added') continue
    const { message, isSilent, metadata } = event
    // The list of subagents (`registry`) is skipped: the runtime writes it as a user message.
    if (isSilent || message.type !== 'user' || metadata?.['kind'] === 'registry') continue
    const text = message.content
      .map((block) => (block.type === 'text' ? block.text : ''))
      .join(' ')
      .slice(0, 50 * FIRST_WORDS)
      .replace(/\s+/g, ' ')
      .trim()
    if (text === '') continue
    // Most texts are plain ASCII; checking that is faster than calling `safeText`.
    const isPlain = /^[\x20-\x7e]*$/.test(text)
    const shown = isPlain ? text : labelText(safeText(text, { isLine: true }))
    const characters = Array.from(shown.slice(0, 2 * FIRST_WORDS + 2))
    return characters.length > FIRST_WORDS
      ? `${characters.slice(0, FIRST_WORDS - 1).join('')}…`
      : shown
  }
  return null
}

/** How many tools a thread's row names at most, and how long a name may be: models may call tools that do not exist. */
const MAX_TOOLS = 200
const MAX_TOOL_NAME = 200

/** Returns the known names and the names of the tools that events call; the same list if there is no new name. */
export function calledTools(
  known: readonly string[],
  events: readonly Pick<RuntimeEvent, 'type'>[],
): readonly string[] {
  let all = known
  for (const event of events) {
    if (event.type !== 'message_added') continue
    // Events of other versions of the runtime may have another form, so every field is checked.
    const { message } = event as { readonly message?: { readonly toolCalls?: readonly unknown[] } }
    if (!Array.isArray(message?.toolCalls)) continue
    for (const call of message.toolCalls as readonly { readonly toolName?: unknown }[]) {
      const { toolName } = call ?? {}
      const name = typeof toolName === 'string' ? labelText(toolName.slice(0, MAX_TOOL_NAME)) : ''
      if (name !== '' && !all.includes(name) && all.length < MAX_TOOLS) all = [...all, name]
    }
  }
  return all
}

function grantEnd(before: number | null, events: readonly RuntimeEvent[]): number | null {
  let last = before
  for (const event of events)
    if (event.type === 'grant_made') last = Math.max(last ?? 0, Date.parse(event.expiresAt) || 0)
  return last
}

function forkIn([first]: readonly RuntimeEvent[]): ThreadHead['forkedFrom'] {
  const from = first?.type === 'thread_created' ? first.metadata?.['forked_from'] : undefined
  if (!isPlainObject(from) || typeof from['thread_id'] !== 'string') return null
  const messageId = from['message_id']
  const id = typeof messageId === 'string' ? labelText(messageId) : null
  return { threadId: labelText(from['thread_id']), messageId: id }
}

/** Events from outside that give an idle thread work, if their commit also sets a wake-up time. */
const GIVES_WORK: ReadonlySet<RuntimeEvent['type']> = new Set([
  'thread_created',
  'message_queued',
  'resume_requested',
  'interrupt_answered',
  'variables_provided',
] as const)

/**
 * Returns the lifecycle after a commit that does not set one. A thread at rest that is given work
 * becomes `queued`; the first commit of the process that works on it (with a `fence`) makes it
 * `running`; the commit that ends this work makes it `idle`, unless it sets another lifecycle.
 */
function lifecycleAfter(
  { lifecycle }: ThreadHead,
  { append = [], fence, wake }: ThreadChange,
): ThreadHead['lifecycle'] {
  switch (lifecycle) {
    case 'queued':
      if (wake && 'exactly' in wake) return 'idle'
      return fence === undefined || append.length === 0 ? lifecycle : 'running'
    case 'idle':
    case 'waiting':
    case 'stopped':
    case 'failed': {
      const isWoken = fence === undefined && wake !== undefined && 'by' in wake
      return isWoken && append.some(({ type }) => GIVES_WORK.has(type)) ? 'queued' : lifecycle
    }
    default:
      return lifecycle
  }
}

/**
 * Returns the head (summary row) of a thread after its contents were erased; its agent, times and cost are kept. The
 * owner and the id that the client chose may name a person, so they go too.
 */
export function erasedHead(
  head: ThreadHead,
  skeleton: readonly { at: string }[],
  { logId, change }: Pick<ThreadHead, 'logId' | 'change'>,
): ThreadHead {
  return {
    ...head,
    owner: null,
    clientId: null,
    title: null,
    firstWords: null,
    tags: [],
    tools: [],
    grantedUntil: null,
    lifecycle: 'erased',
    waiting: 0,
    updatedAt: latest(head.updatedAt, skeleton),
    seq: skeleton.length,
    change,
    logId,
    // The epoch is raised, so that a process that still has the erased contents in memory cannot write them.
    epoch: head.epoch + 1,
    wakeAt: null,
    attempts: 0,
    lease: null,
  }
}

/** Whether every database can store the text: PostgreSQL refuses NUL and halves of surrogate pairs. */
export function isStorable(text: string): boolean {
  return !/[\0\ud800-\udfff]/u.test(text)
}

/**
 * Returns a label (title, tag) as every store keeps it: without NUL, and with U+FFFD for halves of surrogate
 * pairs. Labels may come from a model, so they are cleaned and not refused.
 */
export function labelText(text: string): string {
  return isStorable(text) ? text : text.replaceAll('\0', '').replace(/[\ud800-\udfff]/gu, '\ufffd')
}

/** Whether no process works on the thread and it is not due. `wakeAt` is a number in stores and a text in the API. */
export function isParked(
  thread: Pick<ThreadHead, 'lifecycle'> & { readonly wakeAt: number | string | null },
  now: number,
): boolean {
  const { lifecycle, wakeAt } = thread
  if (lifecycle === 'running' || lifecycle === 'queued' || lifecycle === 'stopping') return false
  return wakeAt === null || new Date(wakeAt).getTime() > now
}

/**
 * Returns the ids of due threads in fair order: the longest waiting thread of each tenant, then the second of
 * each, and so on.
 */
export function dueThreads(heads: Iterable<ThreadHead>, now: number, limit: number): string[] {
  const due: { readonly id: string; readonly tenant: string; readonly wakeAt: number }[] = []
  for (const { id, tenant, wakeAt } of heads)
    if (wakeAt !== null && wakeAt <= now) due.push({ id, tenant, wakeAt })
  const ranks = new Map<string, number>()
  return due
    .toSorted((a, b) => a.wakeAt - b.wakeAt || byId(a, b))
    .map((thread) => {
      const rank = ranks.get(thread.tenant) ?? 0
      ranks.set(thread.tenant, rank + 1)
      return { ...thread, rank }
    })
    .toSorted((a, b) => a.rank - b.rank) // stable: threads of the same rank keep their order
    .slice(0, limit)
    .map(({ id }) => id)
}

/** Returns the text that searches match against, in lower case. */
export function searchText(head: ThreadHead): string {
  const words = head.firstWords === null ? [] : [head.firstWords]
  return [head.id, head.title ?? '', head.agent, head.clientId ?? '', ...head.tags, ...words]
    .join('\n')
    .toLowerCase()
}

/** Returns the time of the latest event. It never goes back, and events without a valid time are ignored. */
function latest(before: number, events: readonly { readonly at: string }[]): number {
  const times = events.map(({ at }) => Date.parse(at)).filter((time) => time > before)
  return Math.max(before, ...times)
}

/** Selects and sorts the heads for a query. */
export function selectThreads(
  heads: Iterable<ThreadHead>,
  query: ThreadQuery,
): readonly ThreadHead[] {
  const { limit, offset } = pageOf(query)
  const { tenant, owner, agent, lifecycle, parentId, rootId, isWaiting, search, tag } = query
  const { forkedFrom, changedAfter, tool, grantedAfter, after, idPart } = query
  const all = [...heads]
  const called = tool === undefined ? [] : all.filter(({ tools }) => tools.includes(tool))
  const ids = new Set(called.flatMap(({ id, rootId }) => [id, rootId]))
  const matches = (head: ThreadHead): boolean =>
    (tenant === undefined || head.tenant === tenant) &&
    (owner === undefined || head.owner === owner) &&
    (agent === undefined || head.agent === agent) &&
    (lifecycle === undefined || head.lifecycle === lifecycle) &&
    (parentId === undefined || head.parentId === parentId) &&
    (rootId === undefined || head.rootId === rootId) &&
    (isWaiting === undefined || head.waiting > 0 === isWaiting) &&
    (search === undefined || searchText(head).includes(search.toLowerCase())) &&
    (idPart === undefined || isPart(idPart, head.id)) &&
    (tag === undefined || head.tags.includes(tag)) &&
    (tool === undefined || ids.has(head.id)) &&
    (grantedAfter === undefined || (head.grantedUntil ?? 0) > grantedAfter) &&
    (forkedFrom === undefined || head.forkedFrom?.threadId === forkedFrom) &&
    (changedAfter === undefined || byChange(changedAfter, head) < 0) &&
    (after === undefined || order(headAt(after), head) < 0)
  const order = changedAfter ? byChange : orders[query.sort ?? 'activity']
  return all
    .filter(matches)
    .toSorted(order)
    .slice(offset, offset + limit)
}

/** Whether an id begins or ends with a text. */
export function isPart(part: string, id: string): boolean {
  return id.startsWith(part) || id.endsWith(part)
}

/** Returns limit and offset of a query: 50 entries by default, at most 1000. */
export function pageOf({ limit = 50, offset = 0 }: ThreadQuery): { limit: number; offset: number } {
  return {
    limit: Math.min(Math.max(Math.trunc(limit), 0), 1000),
    offset: Math.max(Math.trunc(offset), 0),
  }
}

/**
 * Returns the place of a thread in an order, from which the next page of a list continues (`ThreadQuery.after`). Times
 * are numbers in stores and texts in the API.
 */
export function placeOf(
  thread: { readonly id: string } & Readonly<Record<'updatedAt' | 'createdAt', number | string>>,
  sort: Exclude<ThreadQuery['sort'], 'change'> = 'activity',
): ListPlace {
  const at = sort === 'activity' ? thread.updatedAt : thread.createdAt
  return { at: typeof at === 'number' ? at : Date.parse(at), id: thread.id }
}

type Ordered = Pick<ThreadHead, 'id' | 'updatedAt' | 'createdAt' | 'change'>

/** A head at a place, for comparisons in any order. */
function headAt({ at, id }: ListPlace): Ordered {
  return { id, updatedAt: at, createdAt: at, change: at }
}

/** Compares threads in each order. */
export const orders: Readonly<
  Record<NonNullable<ThreadQuery['sort']>, (a: Ordered, b: Ordered) => number>
> = {
  activity: (a, b) => b.updatedAt - a.updatedAt || byId(b, a),
  created: (a, b) => b.createdAt - a.createdAt || byId(b, a),
  oldest: (a, b) => a.createdAt - b.createdAt || byId(a, b),
  change: (a, b) => byChange(b, a),
}

type Place = Pick<ThreadHead, 'change' | 'id'>

function byChange(a: Place, b: Place): number {
  return a.change - b.change || byId(a, b)
}

function byId(a: { readonly id: string }, b: { readonly id: string }): number {
  return a.id < b.id ? -1 : a.id > b.id ? 1 : 0
}

const PAGE = 1000

/** Returns all descendants of a thread, parents before their children. */
export async function descendantsOf(
  { store }: { readonly store: Pick<Store, 'list'> },
  { id, rootId }: Pick<ThreadHead, 'id' | 'rootId'>,
): Promise<readonly ThreadHead[]> {
  // Most threads below a root have no children, and then the tree need not be read.
  if (id !== rootId && (await store.list({ parentId: id, sort: 'oldest', limit: 1 })).length === 0)
    return []
  return below(await treeOf(store, rootId), id)
}

/** Returns all threads of a tree, the oldest first. */
async function treeOf(store: Pick<Store, 'list'>, rootId: string): Promise<readonly ThreadHead[]> {
  const tree: ThreadHead[] = []
  for (let after: ListPlace | undefined; ;) {
    // Sorted by age, so that pages neither overlap nor skip threads while the threads change.
    const page = await store.list({ rootId, sort: 'oldest', limit: PAGE, after })
    tree.push(...page)
    const last = page.at(-1)
    if (!last || page.length < PAGE) return tree
    after = placeOf(last, 'oldest')
    await nextTurn()
  }
}

/** Selects from all threads of a tree the descendants of one thread, parents before their children. */
export function below(tree: readonly ThreadHead[], id: string): readonly ThreadHead[] {
  const children = new Map<string, ThreadHead[]>()
  for (const head of tree) {
    if (head.parentId === null) continue
    const siblings = children.get(head.parentId) ?? []
    children.set(head.parentId, siblings)
    siblings.push(head)
  }
  const found = [...(children.get(id) ?? [])]
  // The list grows while the loop runs, so that all levels are visited.
  for (const head of found) found.push(...(children.get(head.id) ?? []))
  return found
}
