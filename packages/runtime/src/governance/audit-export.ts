import {
  CompactRange,
  leafHash,
  signCheckpoint,
  verifyLog,
  type LogVerdict,
} from '@skein/governance/audit'
import type { PublicJwk, VerifyKey } from '@skein/governance/approvals'
import type { AuditExport, AuditPage } from '../contract/audit-export.ts'
import { nextTurn } from '../store/next-turn.ts'
import type { Store } from '../store/store.ts'
import type { GovernanceKeys } from './governance-keys.ts'

/** How many lines are read and hashed before other work of the process gets its turn. */
const SLICE = 500
/** How many hash trees are kept in memory. */
const MOST_TREES = 100

/** The part of a store that readers of audit logs need. */
type AuditSource = Pick<Store, 'audit' | 'head'>

/**
 * Reads audit logs in pages and signs checkpoints of them. The hash tree of a log (RFC 6962 needs a few hashes for
 * it) is kept, so that a checkpoint hashes only the lines that are new since the last one.
 */
export class AuditReader {
  readonly #store: AuditSource
  readonly #keys: Pick<GovernanceKeys, 'log'>
  readonly #ranges = new Map<string, { readonly logId: number; readonly range: CompactRange }>()

  constructor(store: AuditSource, keys: Pick<GovernanceKeys, 'log'>) {
    this.#store = store
    this.#keys = keys
  }

  /** Returns a page of the log of a root thread and its descendants. The last page has a checkpoint, signed now. */
  async page(
    tree: string,
    { from = 0, limit = SLICE }: { readonly from?: number; readonly limit?: number } = {},
  ): Promise<Omit<AuditPage, 'nextCursor'> & { readonly next: number | undefined }> {
    const { log } = this.#keys
    for (;;) {
      const pageLines = await this.#lines(tree, from, limit + 1)
      const lines = pageLines.slice(0, limit)
      const page = { tree, from, lines, publicKey: log.jwk }
      if (pageLines.length > limit) return { ...page, next: from + limit }
      const size = from + lines.length
      const range = await this.#rangeOf(tree, size)
      // Another reader may have added lines to the hash tree that are newer than this page: then read them too.
      if (range.size !== size) continue
      const head = { origin: originOf(tree), size, root: range.root() }
      return { ...page, checkpoint: await signCheckpoint(head, log), next: undefined }
    }
  }

  /** Yields the pages of a whole log. */
  async *pages(tree: string): AsyncGenerator<Awaited<ReturnType<AuditReader['page']>>> {
    for (let from: number | undefined = 0; from !== undefined;) {
      const page: Awaited<ReturnType<AuditReader['page']>> = await this.page(tree, { from })
      yield page
      from = page.next
      await nextTurn()
    }
  }

  /** Reads lines in parts, so that a long page does not block the process. */
  async #lines(tree: string, from: number, limit: number): Promise<readonly string[]> {
    const lines: string[] = []
    for (;;) {
      const count = Math.min(SLICE, limit - lines.length)
      const rows = await this.#store.audit(tree, { from: from + lines.length, limit: count })
      for (const { line } of rows) lines.push(line)
      if (rows.length < count || lines.length === limit) return lines
      await nextTurn()
    }
  }

  /** Returns the hash tree of a log with at least `size` lines. */
  async #rangeOf(tree: string, size: number): Promise<CompactRange> {
    const logId = (await this.#store.head(tree))?.logId ?? 0
    const earlier = this.#ranges.get(tree)
    // A thread that was removed and made again has another log.
    const isKept = earlier?.logId === logId
    const range = isKept ? earlier.range : new CompactRange()
    this.#ranges.delete(tree)
    this.#ranges.set(tree, { logId, range })
    if (this.#ranges.size > MOST_TREES) this.#ranges.delete(this.#ranges.keys().next().value!)
    while (range.size < size) {
      const after = range.size
      const rows = await this.#store.audit(tree, {
        from: after,
        limit: Math.min(SLICE, size - after),
      })
      if (rows.length === 0) break // removed meanwhile
      // Another reader may have added these lines while they were read.
      if (range.size === after) for (const { line } of rows) range.append(leafHash(line))
      await nextTurn()
    }
    return range
  }
}

/** Returns the audit log of a root thread and its descendants, with a checkpoint that is signed now. */
export async function exportAudit(
  store: AuditSource,
  tree: string,
  keys: Pick<GovernanceKeys, 'log'>,
): Promise<AuditExport> {
  return wholeAudit(new AuditReader(store, keys), tree)
}

/** Reads a whole audit log, page by page. */
export async function wholeAudit(reader: AuditReader, tree: string): Promise<AuditExport> {
  const lines: string[] = []
  for await (const page of reader.pages(tree)) {
    lines.push(...page.lines)
    const { checkpoint, publicKey } = page
    if (checkpoint !== undefined) return { tree, lines, checkpoint, publicKey }
  }
  throw new Error('The last page of an audit log has a checkpoint.')
}

/** Options of `verifyAudit`. */
export interface VerifyAuditOptions {
  /** The keys that the installation published. Do not use the key inside the export: a forger would replace it too. */
  readonly keys: readonly (PublicJwk | VerifyKey)[]
  /** A checkpoint that you kept from an earlier export; proves that nothing before it was rewritten. */
  readonly trusted?: string
}

/** Checks that an export is complete, in order, consistent, and signed by one of these keys. */
export async function verifyAudit(
  { tree, lines, checkpoint }: AuditExport,
  { keys, trusted }: VerifyAuditOptions,
): Promise<LogVerdict> {
  const text = lines.map((line) => `${line}\n`).join('')
  const verdict = await verifyLog(text, {
    keys,
    checkpoints: [checkpoint],
    trusted,
  })
  if (verdict.sealed === lines.length && checkpoint.startsWith(`${originOf(tree)}\n`))
    return verdict
  const fault = {
    index: verdict.sealed,
    kind: 'signature',
    detail: 'not sealed as this log',
  } as const
  return { ...verdict, ok: false, faults: [...verdict.faults, fault] }
}

/**
 * Returns the name of a log in its checkpoints, so that the log of one thread cannot be passed off as that of
 * another.
 */
function originOf(tree: string): string {
  return `skein/audit/${encodeURIComponent(tree)}`
}
