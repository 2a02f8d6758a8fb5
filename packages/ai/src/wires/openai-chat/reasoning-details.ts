import type { JsonObject, JsonValue } from '@skein/base'
import { objectOf, stringOf } from '../read-json.ts'

/** Fields of reasoning details that are streamed in pieces. */
const textFields = new Set(['text', 'summary', 'data'])

/**
 * Joins streamed `reasoning_details` (OpenRouter) into the list that a complete answer would contain:
 * pieces with the same index and type become one entry, texts are joined, and a late signature is
 * added to the entry of its text.
 */
export class ReasoningDetails {
  readonly #entries: Record<string, JsonValue | undefined>[] = []

  get list(): readonly JsonObject[] {
    return this.#entries
  }

  /** Adds the pieces and returns the text in them. */
  push(pieces: readonly JsonValue[]): string {
    let text = ''
    for (const item of pieces) {
      const piece = objectOf(item)
      if (!piece) continue
      text += stringOf(piece['text']) ?? stringOf(piece['summary']) ?? ''
      const entry = this.#entryOf(piece)
      if (!entry) {
        this.#entries.push({ ...piece })
        continue
      }
      for (const [key, value] of Object.entries(piece)) {
        const before = entry[key]
        if (textFields.has(key) && typeof before === 'string' && typeof value === 'string') {
          entry[key] = before + value
        } else if (value !== null && key !== '__proto__') entry[key] = value
      }
    }
    return text
  }

  #entryOf(piece: JsonObject): Record<string, JsonValue | undefined> | undefined {
    const last = this.#entries.at(-1)
    const index = piece['index']
    if (index === undefined || index === null) {
      // A piece without an index continues the last entry only if type and id match and that entry is
      // not signed.
      const isSame = last?.['type'] === piece['type'] && last?.['id'] === piece['id']
      return isSame && !last?.['signature'] && piece['type'] === 'reasoning.text' ? last : undefined
    }
    return this.#entries.find(
      (entry) => entry['index'] === index && entry['type'] === piece['type'],
    )
  }
}
