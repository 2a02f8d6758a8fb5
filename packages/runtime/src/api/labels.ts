import type { JsonObject } from '@skein/base'
import { RuntimeError } from '../contract/error.ts'
import { isStorable } from '../store/storable-text.ts'
import { jsonCopy } from '../thread/facade-buffer.ts'

const MAX_LABEL = 256
const MAX_TAGS = 64
const MAX_METADATA_BYTES = 64 * 1024

/** Throws unless the value is a text of 1 to `MAX_LABEL` characters. `what` names the value in the error. */
export function checkLabel(text: string, what: string): void {
  if (typeof text === 'string' && text !== '' && text.length <= MAX_LABEL && isStorable(text))
    return
  throw new RuntimeError(`${what} must be a text of 1 to ${MAX_LABEL} characters.`, {
    code: 'INPUT_INVALID',
    hint: 'The character NUL and halves of surrogate pairs are not allowed.',
  })
}

/** Throws unless `tags` is a list of at most `MAX_TAGS` labels (see `checkLabel`). */
export function checkTags(tags: readonly string[]): void {
  if (!Array.isArray(tags) || tags.length > MAX_TAGS)
    throw new RuntimeError(`The tags of a thread must be a list of at most ${MAX_TAGS}.`, {
      code: 'INPUT_INVALID',
    })
  for (const tag of tags) checkLabel(tag, 'A tag of the thread')
}

/** Returns a copy of the metadata; throws when it is not JSON or is larger than `MAX_METADATA_BYTES`. */
export function checkedMetadata(metadata: JsonObject, what: string): JsonObject {
  return jsonCopy(metadata, {
    subject: `The metadata of ${what}`,
    code: 'INPUT_INVALID',
    maxBytes: MAX_METADATA_BYTES,
  }) as JsonObject // the copy of an object is an object
}
