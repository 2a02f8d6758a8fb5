import { isPlainObject, type JsonObject } from '@skein/base'
import type { AssistantContent, ProviderMetadata } from '../contract/content.ts'
import type { Warning } from '../contract/turn.ts'
import { isEmpty } from './read-json.ts'
import type { WireName } from '../contract/wire-name.ts'

/** The verbatim vendor block, if it came from this provider through this wire. */
export function nativeOf(
  metadata: ProviderMetadata | undefined,
  provider: string,
  api: WireName,
): JsonObject | undefined {
  const own = metadata?.[provider]
  if (own?.['api'] !== api) return undefined
  const native = own['native']
  return isPlainObject(native) ? (native as JsonObject) : undefined // JSON came in, JSON is kept
}

/** Metadata that keeps a vendor block for replay to its origin. */
export function withNative(
  provider: string,
  api: WireName,
  native: JsonObject,
  extra?: JsonObject,
): ProviderMetadata {
  return { [provider]: { api, native, ...extra } }
}

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

/** The other direction, for a server half: options that its client set, as metadata; undefined: none. */
export function optionsMetadata(
  provider: string,
  options: JsonObject,
): ProviderMetadata | undefined {
  return isEmpty(options) ? undefined : { [provider]: options }
}

/** The warning for reasoning of another vendor that was left out. */
export const foreignReasoning: Warning = {
  code: 'foreign_reasoning_dropped',
  message: 'Reasoning of another vendor or API was left out of the history: it cannot be verified.',
}

/** The warning for an assistant block that this vendor's format cannot hold. */
export function droppedBlock(block: AssistantContent, provider: string): Warning {
  const kind = block.type === 'native' ? `"${block.name}"` : block.type
  return {
    code: 'unsupported_block',
    message: `An assistant's ${kind} block cannot be sent to ${provider} and was left out.`,
  }
}
