import {
  isStorable,
  QuestionLog,
  waitingLimit,
  type WaitingChange,
  type WaitingQuery,
  type WaitingRow,
} from '@skein/runtime'
import type { DatabaseRow, SendStatements, Statement, Value } from './connections.ts'
import { insertStatements } from './insert-statements.ts'

const COLUMNS = [
  'thread_id',
  'interrupt_id',
  'subject',
  'kind',
  'opened_at',
  'until',
  'tenant',
  'owner',
  'agent',
  'root_id',
] as const

function valuesOf(row: WaitingRow): Value[] {
  const { threadId, interruptId, subject, kind, openedAt, until } = row
  const { tenant, owner, agent, rootId } = row
  return [threadId, interruptId, subject, kind, openedAt, until, tenant, owner, agent, rootId]
}

/** Returns the statements that write what commits change in the questions of threads. */
export function waitingStatements(s: string, changes: readonly WaitingChange[]): Statement[] {
  return changes.flatMap((change) => {
    const { threadId, closesAll, closesRequests, closedIds, closedSubjects, opened, labels } =
      change
    const statements: Statement[] = []
    if (closesAll)
      statements.push({ text: `DELETE FROM ${s}.waiting WHERE thread_id = $1`, values: [threadId] })
    else if (closesRequests || closedIds.length + closedSubjects.length > 0)
      statements.push({
        text: `DELETE FROM ${s}.waiting WHERE thread_id = $1
          AND (interrupt_id = ANY($2) OR subject = ANY($3) OR $4::int = 1 AND until IS NOT NULL)`,
        values: [threadId, [...closedIds], [...closedSubjects], closesRequests ? 1 : 0],
      })
    if (labels)
      statements.push({
        text: `UPDATE ${s}.waiting SET owner = $2, agent = $3 WHERE thread_id = $1`,
        values: [threadId, labels.owner, labels.agent],
      })
    return [...statements, ...insertWaiting(s, opened)]
  })
}

function insertWaiting(s: string, rows: readonly WaitingRow[]): Statement[] {
  const sets = COLUMNS.slice(2).map((name) => `${name} = excluded.${name}`)
  const conflict = `ON CONFLICT (thread_id, interrupt_id) DO UPDATE SET ${sets.join(', ')}`
  return insertStatements(`${s}.waiting`, [...COLUMNS], rows.map(valuesOf), conflict)
}

/** The condition that a column begins or ends with a text. */
export function partCondition(column: string, place: string): string {
  return `(starts_with(${column}, ${place}) OR right(${column}, length(${place})) = ${place})`
}

/** Builds the statement that lists the questions of a query; undefined if no question can match. */
export function waitingListing(s: string, query: WaitingQuery): Statement | undefined {
  const { threadIdPart, interruptIdPart, openAt, after } = query
  const values: Value[] = []
  const conditions: string[] = []
  const place = (value: string | number): string => `$${values.push(value)}`
  const names = {
    tenant: 'tenant',
    owner: 'owner',
    agent: 'agent',
    kind: 'kind',
    rootId: 'root_id',
    threadId: 'thread_id',
    interruptId: 'interrupt_id',
  } as const
  for (const [name, column] of Object.entries(names)) {
    const value = query[name as keyof typeof names]
    if (value !== undefined) conditions.push(`${column} = ${place(value)}`)
  }
  for (const [column, part] of [
    ['thread_id', threadIdPart],
    ['interrupt_id', interruptIdPart],
  ] as const)
    if (part) conditions.push(partCondition(column, place(part)))
  if (openAt !== undefined)
    conditions.push(`(until IS NULL OR until > ${place(Math.floor(openAt))})`)
  if (after) {
    const { openedAt, threadId, interruptId } = after
    const places = [openedAt, threadId, interruptId].map(place)
    conditions.push(`(opened_at, thread_id, interrupt_id) > (${places.join(', ')})`)
  }
  if (values.some((value) => typeof value === 'string' && !isStorable(value))) return undefined
  const where = conditions.length > 0 ? `WHERE ${conditions.join(' AND ')}` : ''
  return {
    text: `SELECT ${COLUMNS.join(', ')} FROM ${s}.waiting ${where}
      ORDER BY opened_at, thread_id, interrupt_id LIMIT ${place(waitingLimit(query))}`,
    values,
  }
}

export function waitingRowFrom(row: DatabaseRow): WaitingRow {
  return {
    threadId: row['thread_id'] as string,
    interruptId: row['interrupt_id'] as string,
    subject: row['subject'] as string,
    kind: row['kind'] as WaitingRow['kind'],
    openedAt: row['opened_at'] as number,
    until: row['until'] as number | null,
    tenant: row['tenant'] as string,
    owner: row['owner'] as string | null,
    agent: row['agent'] as string,
    rootId: row['root_id'] as string,
  }
}

const PAGE = 500

/**
 * Fills the table of questions from the logs of the threads that wait, in the caller's transaction: for a schema
 * that had no such table, and for a copy of another store.
 */
export async function fillWaitingTable(run: SendStatements, s: string): Promise<void> {
  for (let after = ''; ;) {
    const [threads] = await run([
      {
        text: `SELECT id, tenant, owner, agent, root_id, log_id FROM ${s}.threads
          WHERE waiting > 0 AND id > $1 ORDER BY id LIMIT ${PAGE}`,
        values: [after],
      },
    ])
    for (const thread of threads) {
      const questions = await questionsOf(run, s, thread['log_id'] as number)
      const rows = questions.rows({
        id: thread['id'] as string,
        tenant: thread['tenant'] as string,
        owner: thread['owner'] as string | null,
        agent: thread['agent'] as string,
        rootId: thread['root_id'] as string,
      })
      if (rows.length > 0) await run(insertWaiting(s, rows))
    }
    if (threads.length < PAGE) return
    after = threads.at(-1)!['id'] as string
  }
}

async function questionsOf(run: SendStatements, s: string, logId: number): Promise<QuestionLog> {
  const questions = new QuestionLog()
  for (let after = 0; ;) {
    const [events] = await run([
      {
        text: `SELECT seq, json FROM ${s}.events WHERE log_id = $1 AND seq > $2
          ORDER BY seq LIMIT ${PAGE}`,
        values: [logId, after],
      },
    ])
    for (const { json } of events) questions.pushStored(json as string)
    if (events.length < PAGE) return questions
    after = events.at(-1)!['seq'] as number
  }
}
