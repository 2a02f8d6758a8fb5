import { headOf, type ApiContext } from './api-context.ts'
import { RuntimeError } from '../contract/error.ts'
import type { AuditReader } from '../governance/audit-export.ts'

/** How many lines a page of an audit log has unless the caller says otherwise, and how many at most. */
export const AUDIT_PAGE = 500

/** The largest number of lines that a page of an audit log may have. */
export const MOST_AUDIT_LINES = 5000

/** Returns the reader of audit logs and the root of the tree; throws if the runtime has no governance. */
export async function auditOf(
  context: ApiContext,
  threadId: string,
): Promise<{ readonly reader: AuditReader; readonly rootId: string }> {
  const { rootId } = await headOf(context, threadId)
  if (context.audit) return { reader: context.audit, rootId }
  throw new RuntimeError(`There is no audit log of thread ${threadId}.`, {
    code: 'LOG_NOT_FOUND',
    hint: 'This runtime was created without governance.',
  })
}
