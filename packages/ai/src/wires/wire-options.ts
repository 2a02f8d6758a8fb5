import type { JsonObject } from '@skein/base'
import type { ProviderMetadata } from '../contract/content.ts'

/** Fields of `metadata[provider]` that wires write for themselves. */
const own = new Set(['api', 'native', 'order'])

/**
 * What the caller set for this vendor on a block, a tool or a result, e.g.
 * `metadata: { anthropic: { cache_control: { type: 'ephemeral' } } }`. It goes onto the wire as is.
 */
export function optionsOf(
  metadata: ProviderMetadata | undefined,
  provider: string,
): JsonObject | undefined {
  const fields = metadata?.[provider]
  if (!fields) return undefined
  const entries = Object.entries(fields).filter(([key]) => !own.has(key))
  return entries.length > 0 ? Object.fromEntries(entries) : undefined
}
