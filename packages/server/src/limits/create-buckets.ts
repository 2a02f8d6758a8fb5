import type { RuntimeNode } from '@skein/runtime/serving'
import { type Buckets, type BucketOptions, TokenBuckets } from './token-buckets.ts'
import { SharedBuckets } from './shared-buckets.ts'

/** Creates the rate limits of a server: its own in memory, or those that it shares with other nodes. */
export function createBuckets(
  options: BucketOptions,
  kind: 'address' | 'client',
  node: RuntimeNode | undefined,
): Buckets {
  return node ? new SharedBuckets(options, kind, node.store) : new TokenBuckets(options)
}
