import { isPlainObject, type JsonObject } from '@skein/base'
import type { ProviderMetadata } from '../contract/content.ts'
import type { WireName } from './wire.ts'

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
