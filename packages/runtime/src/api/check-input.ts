import type { JsonObject } from '@skein/base'
import { RuntimeError } from '../error.ts'
import { jsonCopy } from '../thread/values.ts'

const MAX_LABEL = 256
const MAX_TAGS = 64
const MAX_METADATA_BYTES = 64 * 1024

/** A text that is shown, searched or used as a key: short, and a text. */
export function checkLabel(text: string, what: string): void {
  if (typeof text === 'string' && text !== '' && text.length <= MAX_LABEL) return
  throw new RuntimeError(`${what} is no text of 1 to ${MAX_LABEL} characters.`, {
    code: 'INPUT_INVALID',
  })
}

export function checkTags(tags: readonly string[]): void {
  if (!Array.isArray(tags) || tags.length > MAX_TAGS)
    throw new RuntimeError(`The tags of a thread are no list of at most ${MAX_TAGS}.`, {
      code: 'INPUT_INVALID',
    })
  for (const tag of tags) checkLabel(tag, 'A tag of the thread')
}

/** A copy of metadata that can be kept. */
export function checkedMetadata(metadata: JsonObject, what: string): JsonObject {
  return jsonCopy(metadata, {
    subject: `The metadata of ${what}`,
    code: 'INPUT_INVALID',
    maxBytes: MAX_METADATA_BYTES,
  }) as JsonObject // a copy of an object is one
}
