import { canonicalJson, sha256Hex } from '@skein/base'
import type { Hash } from './envelope.ts'
import type { Action } from './policy.ts'

/** Hash of a JSON value: `sha256:` over its canonical text. Throws where JSON cannot say the value. */
export function hashJson(value: unknown): Hash {
  return hashText(canonicalJson(value))
}

/** Hash of a text that is canonical JSON already. */
export function hashText(canonical: string): Hash {
  return `sha256:${sha256Hex(canonical)}`
}

/**
 * What an approval is bound to: this call of this request, with these arguments, on behalf of this
 * identity, to be inverted this way, under this policy. A change in any of them is another action.
 */
export function actionDigest(action: Action): Hash {
  const { request_id, call_id, tool, risk, args_hash, identity, rollback, policy_hash } = action
  return hashJson({ request_id, call_id, tool, risk, args_hash, identity, rollback, policy_hash })
}
