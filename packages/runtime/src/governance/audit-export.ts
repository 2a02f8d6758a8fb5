import {
  CompactRange,
  leafHash,
  signCheckpoint,
  verifyLog,
  type LogVerdict,
} from '@skein/governance/audit'
import type { PublicJwk, VerifyKey } from '@skein/governance/approvals'
import type { AuditExport } from '../contract/runtime-api.ts'
import type { Store } from '../store/store.ts'
import type { GovernanceKeys } from './governance-keys.ts'

/** Returns the audit log of a root thread and its descendants, with a checkpoint that is signed now. */
export async function exportAudit(
  store: Pick<Store, 'audit'>,
  tree: string,
  keys: Pick<GovernanceKeys, 'log'>,
): Promise<AuditExport> {
  const lines = (await store.audit(tree)).map(({ line }) => line)
  const range = new CompactRange()
  for (const line of lines) range.append(leafHash(line))
  const head = { origin: originOf(tree), size: range.size, root: range.root() }
  const checkpoint = await signCheckpoint(head, keys.log)
  return { tree, lines, checkpoint, publicKey: keys.log.jwk }
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
