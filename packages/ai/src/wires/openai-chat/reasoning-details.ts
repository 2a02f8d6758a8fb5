import type { JsonObject, JsonValue } from '@skein/base'
import { objectOf, stringOf } from '../read-json.ts'

/**
 * Joins streamed `reasoning_details` (OpenRouter) into the list a whole answer would have had:
 * pieces of one index and type are one entry, texts are joined, and a signature that comes late
 * lands on its text.
 */
export class ReasoningDetails {
  readonly #entries: Record<string, JsonValue | undefined>[] = []

  get list(): readonly JsonObject[] {
    return this.#entries
  }

  /** Returns the text in these pieces. */
  push(pieces: readonly JsonValue[]): string {
    let text = ''
    for (const item of pieces) {
      const piece = objectOf(item)
      if (!piece) continue
      text += stringOf(piece['text']) ?? stringOf(piece['summary']) ?? ''
      const entry = this.#entryOf(piece)
      if (entry) join(entry, piece)
      else this.#entries.push({ ...piece })
    }
    return text
  }

  #entryOf(piece: JsonObject): Record<string, JsonValue | undefined> | undefined {
    const last = this.#entries.at(-1)
    const index = piece['index']
    if (index === undefined || index === null) {
      // Without numbers only a direct continuation can be told from a new entry.
      const isSame = last?.['type'] === piece['type'] && last?.['id'] === piece['id']
      return isSame && !last?.['signature'] && piece['type'] === 'reasoning.text' ? last : undefined
    }
    return this.#entries.find(
      (entry) => entry['index'] === index && entry['type'] === piece['type'],
    )
  }
}

const joined = new Set(['text', 'summary', 'data'])

function join(entry: Record<string, JsonValue | undefined>, piece: JsonObject): void {
  for (const [key, value] of Object.entries(piece)) {
    const before = entry[key]
    if (joined.has(key) && typeof before === 'string' && typeof value === 'string') {
      entry[key] = before + value
    } else if (value !== null && key !== '__proto__') entry[key] = value
  }
}
