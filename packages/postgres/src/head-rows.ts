import { headColumns, type HeadColumns, headOfRow, type ThreadHead } from '@skein/runtime'
import type { DatabaseRow, Statement, Value } from './connections.ts'
import { insertStatements } from './insert-statements.ts'

/** Converts a row of `threads` to a head. */
export function headFromRow(row: DatabaseRow): ThreadHead {
  return headOfRow(row, (lists, column) => lists[column] as string[])
}

const LABELS: HeadColumns = headColumns.labels

// In other stores, times of events may have fractions of milliseconds, which these columns do not take.
const FIXED: HeadColumns = {
  ...headColumns.fixed,
  created_at: (head) => Math.round(head.createdAt),
}
const PROGRESS: HeadColumns = {
  ...headColumns.progress,
  updated_at: (head) => Math.round(head.updatedAt),
  wake_at: (head) => (head.wakeAt === null ? null : Math.ceil(head.wakeAt)),
}

const ALL: HeadColumns = { ...FIXED, ...LABELS, ...PROGRESS }

/** The columns of `threads` that heads consist of; `search` is used only by the server. */
export const HEAD_COLUMNS: string = Object.keys(ALL)
  .filter((column) => column !== 'search')
  .join(', ')

/** Returns the statements that write the rows of threads; `before` is undefined for a new thread. */
export function headStatements(
  s: string,
  heads: Iterable<{ readonly head: ThreadHead; readonly before: ThreadHead | undefined }>,
): Statement[] {
  const statements: Statement[] = []
  const newRows: Value[][] = []
  const valuesOf = (head: ThreadHead, columns: HeadColumns): Value[] =>
    Object.values(columns).map((value) => value(head))
  for (const { head, before } of heads) {
    if (!before) {
      newRows.push(valuesOf(head, ALL))
      continue
    }
    for (const columns of [PROGRESS, LABELS]) {
      // The search text is computed from the other labels, so it need not be compared.
      const parts = Object.values(columns).filter((value) => value !== LABELS['search'])
      if (parts.every((value) => value(head) === value(before))) continue
      const values = [head.id, ...valuesOf(head, columns)]
      statements.push({ text: updateText(s, columns), values })
    }
  }
  return [...statements, ...insertStatements(`${s}.threads`, Object.keys(ALL), newRows)]
}

const updates = new Map<string, string>()

function updateText(s: string, columns: HeadColumns): string {
  const key = `${s} ${columns === PROGRESS}`
  let text = updates.get(key)
  if (text === undefined) {
    const sets = Object.keys(columns).map((name, index) => `${name} = $${index + 2}`)
    text = `UPDATE ${s}.threads SET ${sets.join(', ')} WHERE id = $1`
    updates.set(key, text)
  }
  return text
}
