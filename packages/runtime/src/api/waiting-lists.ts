import type { Inbox, WaitingPage, WaitingSelection } from '../contract/inbox.ts'
import type { WaitingItem } from '../contract/waiting-item.ts'
import { nextTurn } from '../store/next-turn.ts'
import type { WaitingPlace, WaitingRow } from '../store/waiting-query.ts'
import { type ApiContext, type ApiEnvironment, createApiContext } from './api-context.ts'
import { decodeCursor, encodeCursor } from '../contract/cursor.ts'
import { AgentPaths } from './agent-path.ts'
import { questionItem, variablesItem } from './waiting-item.ts'
import { openForPeople } from '../state/questions.ts'
import { openVariables } from '../state/variables.ts'

/** How many items a page has unless the caller says otherwise, and how many at most. */
const PAGE = 100
const MOST = 1000
/** How many items are read from the logs of their threads before other work of the process gets its turn. */
const PAUSE_AFTER = 10

/** Creates the part of the inbox that lists what waits. */
export function waitingLists(environment: ApiEnvironment): Pick<Inbox, 'list' | 'page'> {
  const context = createApiContext(environment)
  return {
    list: (query) => waitingItems(context, query),
    page: (query) => waitingPage(context, query),
  }
}

/** Lists everything that waits for a person or a client, the oldest first, up to `limit` items. */
export async function waitingItems(
  context: ApiContext,
  { limit = Infinity, ...selection }: WaitingSelection & { readonly limit?: number } = {},
): Promise<readonly WaitingItem[]> {
  const items: WaitingItem[] = []
  let cursor: string | undefined
  do {
    const rest = Math.min(limit - items.length, MOST)
    if (rest <= 0) break
    const page = await waitingPage(context, { ...selection, limit: rest, cursor })
    items.push(...page.waiting)
    cursor = page.nextCursor
  } while (cursor !== undefined)
  return items
}

/** Reads one page of what waits. Only the threads of its items are read. */
async function waitingPage(
  context: ApiContext,
  { limit = PAGE, cursor, ...selection }: NonNullable<Parameters<Inbox['page']>[0]> = {},
): Promise<WaitingPage> {
  const count = Math.min(Math.max(Math.trunc(limit), 1), MOST)
  const rows = await context.store.waiting({
    ...selection,
    openAt: context.clock.now(),
    after: cursor === undefined ? undefined : placeIn(cursor),
    limit: count,
  })
  const paths = new AgentPaths(context)
  const waiting: WaitingItem[] = []
  for (const [index, row] of rows.entries()) {
    if (index > 0 && index % PAUSE_AFTER === 0) await nextTurn()
    const item = await itemOf(context, paths, row)
    if (item) waiting.push(item)
  }
  const last = rows.at(-1)
  return { waiting, nextCursor: last && rows.length === count ? cursorOf(last) : undefined }
}

/** Reads an item from the state of its thread; undefined if it was answered since its row was read. */
async function itemOf(
  context: ApiContext,
  paths: AgentPaths,
  { threadId, interruptId, kind }: WaitingRow,
): Promise<WaitingItem | undefined> {
  const head = await context.store.head(threadId)
  if (!head) return undefined
  const path = await paths.of(head)
  const thread = await context.folds.load(threadId)
  if (!thread || thread.state.isErased) return undefined
  const { state } = thread // used before the next `await`: other readers share it
  if (kind === 'variables') {
    const pending = openVariables(state, context.clock.now()).find(
      ({ requested }) => requested.requestId === interruptId,
    )
    return pending && variablesItem(context, { head: thread.head, state, path }, pending.requested)
  }
  const open = openForPeople(state).find(({ interrupt }) => interrupt.id === interruptId)
  return open && questionItem(context, { head: thread.head, state, open, path })
}

function cursorOf({ openedAt, threadId, interruptId }: WaitingPlace): string {
  return encodeCursor([openedAt, threadId, interruptId])
}

function placeIn(cursor: string): WaitingPlace {
  const types = ['number', 'string', 'string'] as const
  const [openedAt, threadId, interruptId] = decodeCursor<[number, string, string]>(
    cursor,
    types,
    'the inbox',
  )
  return { openedAt, threadId, interruptId }
}
