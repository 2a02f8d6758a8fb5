import { isPlainObject, secretForms } from '@skein/base'
import { searchTree, type SearchTree } from './search-tree.ts'
import type { Redactor } from './vault.ts'

const MARK = '[redacted]'

/**
 * Creates a redactor that removes any number of secrets from texts in one pass. It finds secrets also
 * in base64 (at any byte offset), in hex, URL-encoded and JSON-escaped. Secrets shorter than 4
 * characters are not searched for.
 */
export function createRedactor(secrets: Iterable<string>): Redactor {
  const forms = new Set<string>()
  for (const secret of secrets) {
    const own = [...secretForms(secret)]
    if (own.length === 0) continue // the secret is too short to be searched for
    const hex = Buffer.from(secret.trim()).toString('hex')
    for (const form of [...own, hex, hex.toUpperCase()]) forms.add(form)
  }
  if (forms.size === 0) return identity
  const tree = searchTree(forms)
  const mayContain = quickSearch(forms)
  const text = (input: string): string => {
    if (!mayContain(input)) return input
    const stream = redactStream(tree)
    return stream.push(input) + stream.end()
  }
  return {
    text,
    json: (value) => redactJson(value, text),
    stream: () => redactStream(tree),
  }
}

const identity: Redactor = {
  text: (text) => text,
  json: (value) => value,
  stream: () => ({ push: (text) => text, end: () => '' }),
}

/** The range of a secret in the stream; positions count from the beginning of the stream. */
interface Range {
  start: number
  end: number
}

function redactStream(tree: SearchTree): { push(text: string): string; end(): string } {
  let node = 0
  /** Text that was not returned yet, and the position in the stream where it begins (`from`). */
  let tail = ''
  let from = 0
  let ranges: Range[] = []
  /** End of the last range that was replaced by a mark. A range that overlaps or touches it gets no second mark. */
  let coverEnd = -1

  /** Returns the held text before the position `until`, with marks in place of secrets. */
  function give(until: number): string {
    let result = ''
    // A range that was already replaced by a mark may extend into the text that is held back.
    let position = Math.max(from, coverEnd)
    let outputLength = 0
    for (; outputLength < ranges.length && ranges[outputLength]!.start < until; outputLength++) {
      const { start, end } = ranges[outputLength]!
      if (start > coverEnd) result += tail.slice(position - from, start - from) + MARK
      coverEnd = end
      position = end
    }
    ranges = ranges.slice(outputLength)
    if (position < until) result += tail.slice(position - from, until - from)
    tail = tail.slice(until - from)
    from = until
    return result
  }

  return {
    push(text) {
      const start = from + tail.length
      for (let i = 0; i < text.length; i++) {
        node = tree.step(node, text.charCodeAt(i))
        const length = tree.matchLength(node)
        if (length > 0) cover(ranges, { start: start + i + 1 - length, end: start + i + 1 })
      }
      tail += text
      return give(from + tail.length - tree.openLength(node))
    },
    end() {
      node = 0
      return give(from + tail.length)
    },
  }
}

/** Adds a range that ends after all others, merging it with the ranges that it overlaps or touches. */
function cover(ranges: Range[], range: Range): void {
  let last = ranges.at(-1)
  while (last && last.end >= range.start) {
    range.start = Math.min(range.start, last.start)
    ranges.pop()
    last = ranges.at(-1)
  }
  ranges.push(range)
}

function redactJson<T>(value: T, redact: (text: string) => string): T {
  // The cast is right: strings, lists and plain objects stay strings, lists and plain objects.
  return walk(value) as T

  function walk(node: unknown): unknown {
    if (typeof node === 'string') return redact(node)
    if (typeof node !== 'object' || node === null) return node
    if (Array.isArray(node)) return walkList(node)
    if (isPlainObject(node)) return walkObject(node)
    // An object with `toJSON`, such as a message, is returned as it is if its JSON contains no secret;
    // otherwise its redacted JSON is returned.
    if (!('toJSON' in node) || typeof node.toJSON !== 'function') return node
    const json: unknown = node.toJSON()
    if (json === node) return node
    const clean = walk(json)
    return clean === json ? node : clean
  }

  function walkList(list: readonly unknown[]): readonly unknown[] {
    const clean = list.map(walk)
    return clean.some((item, index) => item !== list[index]) ? clean : list
  }

  function walkObject(object: Record<string, unknown>): Record<string, unknown> {
    let isChanged = false
    const entries = Object.entries(object).map(([key, item]) => {
      const entry: [string, unknown] = [redact(key), walk(item)]
      isChanged ||= entry[0] !== key || entry[1] !== item
      return entry
    })
    return isChanged ? Object.fromEntries(entries) : object
  }
}

/**
 * The size of the skip table. If two pairs of code units share an entry, the search is slower, but its
 * result is right.
 */
const PLACES = 1 << 14

/**
 * Returns a fast test whether any of the patterns may occur in a text (Wu and Manber). A table gives, for
 * each pair of code units, how far the search may skip ahead, so most of the text is not read. The result
 * `true` may be wrong, `false` never is.
 */
function quickSearch(patterns: Iterable<string>): (text: string) => boolean {
  const list = [...patterns]
  const length = Math.min(...list.map((pattern) => pattern.length))
  if (length < 2) return () => true
  const skips = new Uint16Array(PLACES).fill(Math.min(length - 1, 0xffff))
  const endings = new Map<number, Set<string>>()
  for (const pattern of list) {
    for (let i = 1; i < length; i++) {
      const place = placeOf(pattern.charCodeAt(i - 1), pattern.charCodeAt(i))
      skips[place] = Math.min(skips[place]!, length - 1 - i)
    }
    const place = placeOf(pattern.charCodeAt(length - 2), pattern.charCodeAt(length - 1))
    const lengths = endings.get(place)
    if (lengths) lengths.add(pattern.slice(0, length))
    else endings.set(place, new Set([pattern.slice(0, length)]))
  }

  return (text) => {
    // A malicious text could make every comparison slow. After too many comparisons the result is `true`.
    let patience = text.length + 1000
    let at = length - 1
    while (at < text.length) {
      const place = placeOf(text.charCodeAt(at - 1), text.charCodeAt(at))
      const skip = skips[place]!
      if (skip > 0) at += skip
      else {
        const beginnings = endings.get(place)!
        patience -= length
        if (patience < 0 || beginnings.has(text.slice(at - length + 1, at + 1))) return true
        at++
      }
    }
    return false
  }
}

function placeOf(first: number, second: number): number {
  return ((first << 7) ^ second) & (PLACES - 1)
}
