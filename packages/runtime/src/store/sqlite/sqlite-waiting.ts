import type { DatabaseSync, SQLInputValue } from 'node:sqlite'
import { unpackText } from './packed-text.ts'
import { isPartOf, type ReadRows } from './sqlite-list.ts'
import type { Row } from './sqlite-rows.ts'
import type { WaitingKind, WaitingQuery, WaitingRow } from '../waiting-query.ts'
import { QuestionLog, type WaitingChange, waitingLimit } from '../waiting-rows.ts'

/** Runs a statement that returns no rows. */
type RunStatement = (sql: string, ...values: SQLInputValue[]) => void

const INSERT = `REPLACE INTO waiting (
  thread_id, interrupt_id, subject, kind, opened_at, until, tenant, owner, agent, root_id
) VALUES (?, ?, ?, ?, ?, ?, ?, ?, ?, ?)`

/** Writes what a commit changes in the questions of a thread. */
export function writeWaiting(run: RunStatement, change: WaitingChange): void {
  const { threadId, closesAll, closesRequests, closedIds, closedSubjects, opened, labels } = change
  if (closesAll) run('DELETE FROM waiting WHERE thread_id = ?', threadId)
  if (closesRequests) run('DELETE FROM waiting WHERE thread_id = ? AND until IS NOT NULL', threadId)
  for (const id of closedIds)
    run('DELETE FROM waiting WHERE thread_id = ? AND interrupt_id = ?', threadId, id)
  for (const subject of closedSubjects)
    run('DELETE FROM waiting WHERE thread_id = ? AND subject = ?', threadId, subject)
  if (labels)
    run(
      'UPDATE waiting SET owner = ?, agent = ? WHERE thread_id = ?',
      labels.owner,
      labels.agent,
      threadId,
    )
  for (const row of opened) run(INSERT, ...valuesOf(row))
}

function valuesOf(row: WaitingRow): SQLInputValue[] {
  const { threadId, interruptId, subject, kind, openedAt, until } = row
  const { tenant, owner, agent, rootId } = row
  return [threadId, interruptId, subject, kind, openedAt, until, tenant, owner, agent, rootId]
}

/** The conditions of a query that are columns, with the index that has the column before the order. */
const INDEXES = [
  ['threadId', 'thread_id', undefined],
  ['rootId', 'root_id', 'waiting_by_root'],
  ['owner', 'owner', 'waiting_by_owner'],
  ['agent', 'agent', 'waiting_by_agent'],
  ['kind', 'kind', 'waiting_by_kind'],
  ['tenant', 'tenant', 'waiting_by_tenant'],
  ['interruptId', 'interrupt_id', undefined],
] as const

/** Lists questions in their order. */
export function listWaiting(read: ReadRows, query: WaitingQuery): WaitingRow[] {
  const { threadIdPart, interruptIdPart, openAt, after } = query
  const where: string[] = []
  const values: SQLInputValue[] = []
  const add = (condition: string, ...more: SQLInputValue[]): void => {
    where.push(condition)
    values.push(...more)
  }
  for (const [name, column] of INDEXES) {
    const value = query[name]
    if (value !== undefined) add(`${column} = ?`, value)
  }
  for (const [column, text] of [
    ['thread_id', threadIdPart],
    ['interrupt_id', interruptIdPart],
  ] as const)
    if (text) add(isPartOf(column), text, text, text, text)
  if (openAt !== undefined) add('(until IS NULL OR until > ?)', openAt)
  if (after)
    add(
      '(opened_at, thread_id, interrupt_id) > (?, ?, ?)',
      after.openedAt,
      after.threadId,
      after.interruptId,
    )
  const conditions = where.length > 0 ? `WHERE ${where.join(' AND ')}` : ''
  return read(
    `SELECT * FROM waiting ${indexFor(query)} ${conditions}
    ORDER BY opened_at, thread_id, interrupt_id LIMIT ?`,
    ...values,
    waitingLimit(query),
  ).map(rowFrom)
}

/** Names the index to use, because SQLite knows too little about the table to choose one by itself. */
function indexFor(query: WaitingQuery): string {
  if (query.threadId !== undefined) return '' // the primary key begins with the thread, which has few questions
  if (query.interruptId !== undefined) return 'INDEXED BY waiting_by_id'
  const hasTenant = query.tenant !== undefined
  for (const [name, , index] of INDEXES) {
    if (index === undefined || query[name] === undefined) continue
    if (name === 'rootId' || hasTenant) return `INDEXED BY ${index}`
  }
  return 'INDEXED BY waiting_by_time'
}

function rowFrom(row: Row): WaitingRow {
  return {
    threadId: row['thread_id'] as string,
    interruptId: row['interrupt_id'] as string,
    subject: row['subject'] as string,
    kind: row['kind'] as WaitingKind,
    openedAt: row['opened_at'] as number,
    until: row['until'] as number | null,
    tenant: row['tenant'] as string,
    owner: row['owner'] as string | null,
    agent: row['agent'] as string,
    rootId: row['root_id'] as string,
  }
}

/** Fills the table of questions from the logs of the threads that wait, for a store that had no such table. */
export function fillWaitingRows(database: DatabaseSync): void {
  const threads = database
    .prepare('SELECT id, tenant, owner, agent, root_id, log_id FROM threads WHERE waiting > 0')
    .all()
  const events = database.prepare(
    'SELECT json FROM events WHERE id > ?1 << 32 AND id < (?1 + 1) << 32 ORDER BY id',
  )
  const insert = database.prepare(INSERT)
  for (const thread of threads) {
    const questions = new QuestionLog()
    for (const { json } of events.iterate(thread['log_id']!)) pushPacked(questions, json)
    const rows = questions.rows({
      id: thread['id'] as string,
      tenant: thread['tenant'] as string,
      owner: thread['owner'] as string | null,
      agent: thread['agent'] as string,
      rootId: thread['root_id'] as string,
    })
    for (const row of rows) insert.run(...valuesOf(row))
  }
}

function pushPacked(questions: QuestionLog, content: unknown): void {
  try {
    questions.pushStored(unpackText(content as string | Uint8Array))
  } catch {
    // A damaged event is reported when it is read, or by `skein store verify`.
  }
}
