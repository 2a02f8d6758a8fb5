import type { Transport } from './transport.ts'

/** The twin of `http-node.ts` where there is no Node: `fetch` is all there is. */
export function nodeTransport(): Transport | undefined {
  return undefined
}
