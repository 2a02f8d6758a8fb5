import type { Hash, Risk } from '../contract/envelope.ts'

/** The fields that identify a call in the journal. */
export interface CallNames {
  readonly call: string
  readonly tool: string
  readonly risk: Risk
  readonly args_hash: Hash
  /** For arguments that were parsed: the hash of what the model sent, and of the schema. */
  readonly sent_hash?: Hash
  readonly schema?: string
}

/** Returns the fields of a call that its entries in the journal have. */
export function namesOf({ call, tool, risk, args_hash, sent_hash, schema }: CallNames): CallNames {
  if (sent_hash === undefined) return { call, tool, risk, args_hash }
  const names = { call, tool, risk, args_hash, sent_hash }
  return schema === undefined ? names : { ...names, schema }
}
