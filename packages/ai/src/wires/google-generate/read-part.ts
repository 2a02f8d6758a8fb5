import type { JsonObject } from '@skein/base'
import { isEmpty, objectOf, without } from '../read-json.ts'
import type { GooglePart } from './types.ts'

export const textKeys: ReadonlySet<string> = new Set(['text', 'thought'])
export const mediaKeys: ReadonlySet<string> = new Set(['inlineData'])
const callKeys = new Set(['id', 'name', 'args', 'partialArgs', 'willContinue'])
/** Fields that go with a part but are not what it is. */
const aside = new Set(['thought', 'thoughtSignature', 'partMetadata', 'videoMetadata'])

export function hasOnly(part: GooglePart, keys: ReadonlySet<string>): boolean {
  for (const key in part) if (!keys.has(key)) return false
  return true
}

/** What a part is: the name of its first field that says so. */
export function partName(part: GooglePart): string {
  return Object.keys(part).find((key) => !aside.has(key)) ?? 'part'
}

export interface Media {
  readonly kind: 'image' | 'audio' | 'video'
  readonly mimeType: string
  readonly data: string
}

/** Media the model made. Drafts inside its thoughts are not part of the answer. */
export function mediaOf(part: GooglePart): Media | undefined {
  const inline = objectOf(part['inlineData'])
  if (!inline || part['thought'] === true) return undefined
  const { mimeType, data } = inline
  if (typeof mimeType !== 'string' || typeof data !== 'string') return undefined
  const kind = mimeType.split('/')[0]
  const isMedia = kind === 'image' || kind === 'audio' || kind === 'video'
  return isMedia ? { kind, mimeType, data } : undefined
}

const functionCallKey = new Set(['functionCall'])

/** What a call's part says beyond name, id and arguments. */
export function nativeCall(part: GooglePart, call: JsonObject): JsonObject {
  const beside = without(part, functionCallKey)
  const inside = without(call, callKeys)
  return isEmpty(inside) ? beside : { ...beside, functionCall: inside }
}
