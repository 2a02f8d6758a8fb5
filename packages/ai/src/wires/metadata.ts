import { isPlainObject, type JsonObject } from '@skein/base'
import type { AssistantContent, ProviderMetadata } from '../contract/content.ts'
import type { Warning } from '../contract/turn.ts'
import { isEmpty } from './read-json.ts'
import type { WireName } from '../contract/provider.ts'

/** Returns the original vendor block, if it came from this provider in this vendor format. */
export function nativeOf(
  metadata: ProviderMetadata | undefined,
  provider: string,
  api: WireName,
): JsonObject | undefined {
  const own = metadata?.[provider]
  if (own?.['api'] !== api) return undefined
  const native = own['native']
  return isPlainObject(native) ? (native as JsonObject) : undefined // only JSON is stored here
}

/** Makes metadata that keeps the original vendor block, to be sent back to the same vendor. */
export function withNative(
  provider: string,
  api: WireName,
  native: JsonObject,
  extra?: JsonObject,
): ProviderMetadata {
  return { [provider]: { api, native, ...extra } }
}

/** Fields of `metadata[provider]` that this package writes itself. */
const own = new Set(['api', 'native', 'order', 'vendorTool'])

/**
 * Returns the fields that the caller set for this vendor on a block, a tool or a result, e.g.
 * `metadata: { anthropic: { cache_control: { type: 'ephemeral' } } }`. They are sent unchanged.
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

/** Converts vendor options that a client sent to a server to metadata; undefined if there are none. */
export function optionsMetadata(
  provider: string,
  options: JsonObject,
): ProviderMetadata | undefined {
  return isEmpty(options) ? undefined : { [provider]: options }
}

/** The warning about reasoning of another vendor that was left out. */
export const foreignReasoning: Warning = {
  code: 'foreign_reasoning_dropped',
  message: 'Reasoning of another vendor or API was left out.',
}

/** Makes the warning about an assistant block that this vendor's format cannot express. */
export function droppedBlock(block: AssistantContent, provider: string): Warning {
  const kind = block.type === 'native' ? `"${block.name}"` : block.type
  return {
    code: 'unsupported_block',
    message: `An assistant's ${kind} block cannot be sent to ${provider} and was left out.`,
  }
}
