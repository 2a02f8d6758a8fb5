import {
  CompactRange,
  leafHash,
  signCheckpoint,
  verifyLog,
  type LogVerdict,
} from '@skein/governance/audit'
import type { PublicJwk, VerifyKey } from '@skein/governance/approvals'
import type { AuditExport } from '../runtime-api.ts'
import type { Store } from '../store/store.ts'
import type { GovernanceKeys } from './governance-keys.ts'

/** The audit log of a root thread and its descendants, under a signature of now. */
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

export interface VerifyAuditOptions {
  /** The installation's keys as it published them; not those that came with the export. */
  readonly keys: readonly (PublicJwk | VerifyKey)[]
  /** A checkpoint of an earlier export that you kept: then nothing before it can have been rewritten. */
  readonly trusted?: string
}

/** Says whether an export is whole, in order, possible, and signed by one of these keys. */
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

/** Names a log in its checkpoints, so that one thread's cannot pass for another's. */
function originOf(tree: string): string {
  return `skein/audit/${encodeURIComponent(tree)}`
}
