import type { Transport } from './transport.ts'

/** Replaces `http-node.ts` on platforms other than Node, where only `fetch` exists. */
export function sharedTransport(): Transport | undefined {
  return undefined
}
