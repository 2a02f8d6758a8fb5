import type { PublicJwk } from '@skein/governance/approvals'

/** The audit log of a tree of threads, with the data that is needed to verify it. */
export interface AuditExport {
  readonly tree: string
  readonly lines: readonly string[]
  readonly checkpoint: string
  /** The public key that verifies the checkpoint, in the form that `verifyLog` accepts. */
  readonly publicKey: PublicJwk
}

/**
 * A page of an audit log. The lines of all pages in order, with the checkpoint and the key of the last page, are
 * the whole export (`AuditExport`).
 */
export interface AuditPage extends Omit<AuditExport, 'checkpoint'> {
  /** The index of the first line. */
  readonly from: number
  /** The cursor of the next page; absent on the last page. */
  readonly nextCursor?: string
  /** The signed checkpoint of the whole log up to the last line; only on the last page. */
  readonly checkpoint?: string
}
