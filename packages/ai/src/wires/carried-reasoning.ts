import { decodeBase64, encodeBase64, isPlainObject, type JsonObject } from '@skein/base'
import type { ProviderMetadata } from '../contract/content.ts'

const PREFIX = 'skein1.'

/**
 * Packs what a vendor needs to recognise its reasoning (a signature, encrypted content) into a text for a client of
 * another format, which sends it back as its own format's signature. Undefined if there is nothing to carry.
 */
export function packReasoning(metadata: ProviderMetadata | undefined): string | undefined {
  const entries = Object.entries(metadata ?? {}).filter(([, own]) => own['native'] !== undefined)
  if (entries.length === 0) return undefined
  const bytes = new TextEncoder().encode(JSON.stringify(Object.fromEntries(entries)))
  return PREFIX + encodeBase64(bytes)
}

/** Reads a text made by `packReasoning`; undefined for any other text. It came from a client, so it is checked. */
export function unpackReasoning(text: string | undefined): ProviderMetadata | undefined {
  if (!text?.startsWith(PREFIX)) return undefined
  try {
    const json: unknown = JSON.parse(
      new TextDecoder().decode(decodeBase64(text.slice(PREFIX.length))),
    )
    if (!isPlainObject(json)) return undefined
    const entries = Object.entries(json).flatMap(([provider, own]): [string, JsonObject][] =>
      isPlainObject(own) && typeof own['api'] === 'string' && isPlainObject(own['native'])
        ? [[provider, { api: own['api'], native: own['native'] as JsonObject }]]
        : [],
    )
    return entries.length > 0 ? Object.fromEntries(entries) : undefined
  } catch {
    return undefined // not our text, so it is nothing that another vendor could use
  }
}
