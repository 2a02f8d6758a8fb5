import type { StoreRow } from '@skein/runtime'
import { inBatches, valuesList } from './insert-statements.ts'
import type { Statement } from './connections.ts'

/** A line of an audit log, with its number in the log. */
type AuditRow = Omit<Extract<StoreRow, { type: 'audit' }>, 'type' | 'tree'>

/**
 * Returns the statements that append lines to the audit log of a tree of threads and set its length. If
 * the tree is new, they also insert its row. If two transactions insert it concurrently, the second fails,
 * because its first line has the same number, and is repeated.
 */
export function auditStatements(s: string, tree: string, lines: readonly AuditRow[]): Statement[] {
  const columns = ['number', 'request_id', 'seq', 'line']
  const types = ['int', 'text', 'int', 'text']
  return inBatches(lines, (rows) => ({
    text: `WITH tree AS (
        INSERT INTO ${s}.audit_trees (tree, length) VALUES ($1, $2)
        ON CONFLICT (tree) DO UPDATE SET length = excluded.length RETURNING key)
      INSERT INTO ${s}.audit (tree_key, ${columns.join(', ')})
      SELECT tree.key, line.* FROM tree, (${valuesList(rows.length, columns, { after: 2, types })}) line`,
    values: [
      tree,
      rows.at(-1)!.index + 1,
      ...rows.flatMap(({ index, requestId, seq, line }) => [index, requestId, seq, line]),
    ],
  }))
}
