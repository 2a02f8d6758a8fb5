import type { JsonObject, JsonValue } from '@skein/base'
import type { ProviderMetadata } from '../../contract/content.ts'
import type { BlockKind } from '../../contract/event.ts'
import { withNative } from '../native.ts'
import { without } from '../read-json.ts'
import { API } from './types.ts'

/** A block of the vendor as far as it has come. */
export interface VendorBlock {
  readonly kind: BlockKind
  /** Without what the UPP block holds itself. */
  readonly native: JsonObject
  /** JSON text of a server tool's input. */
  readonly inputPieces: readonly string[]
}

export function kindOf(type: string): BlockKind {
  if (type === 'text') return 'text'
  if (type === 'thinking' || type === 'redacted_thinking') return 'reasoning'
  return type === 'tool_use' ? 'tool_call' : 'native'
}

const heldFields = new Set(['text', 'thinking', 'input'])

/** The vendor's block without what a UPP block or call holds itself. */
export function withoutHeld(native: JsonObject): JsonObject {
  return without(native, heldFields)
}

const typeOnly = new Set(['type'])

/** Deltas to come: texts and lists grow, everything else is replaced. */
export function mergeUnknown(native: JsonObject, delta: JsonObject): JsonObject {
  const merged = Object.entries(without(delta, typeOnly)).map(
    ([key, value]): [string, JsonValue | undefined] => {
      const before = native[key]
      if (typeof before === 'string' && typeof value === 'string') return [key, before + value]
      if (Array.isArray(before) && Array.isArray(value)) return [key, [...before, ...value]]
      return [key, value]
    },
  )
  return { ...native, ...Object.fromEntries(merged) }
}

/** What UPP has a field for, by block. */
const held: Partial<Record<BlockKind, ReadonlySet<string>>> = {
  text: new Set(['type']),
  tool_call: new Set(['type', 'id', 'name']),
}

/** What the finished UPP block or call keeps of the vendor's: all that UPP itself has no field for. */
export function blockMetadata(
  { kind, native, inputPieces }: VendorBlock,
  provider: string,
): ProviderMetadata | undefined {
  const known = held[kind]
  if (known) {
    const says = ([key, value]: [string, unknown]): boolean =>
      !known.has(key) && !(Array.isArray(value) && value.length === 0)
    return Object.entries(native).some(says) ? withNative(provider, API, native) : undefined
  }
  if (inputPieces.length === 0) return withNative(provider, API, native)
  return withNative(provider, API, { ...native, input: parseInput(inputPieces, native['input']) })
}

/** A server tool's input that was cut off cannot be replayed; the one of its start can. */
function parseInput(pieces: readonly string[], fallback: JsonValue | undefined): JsonValue {
  const text = pieces.join('')
  try {
    return text === '' ? (fallback ?? {}) : (JSON.parse(text) as JsonValue)
  } catch {
    return fallback ?? {}
  }
}
