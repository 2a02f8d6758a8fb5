import { encodeBase64, encodeBase64Url } from './base64.ts'

/**
 * The length of the shortest secret that is replaced. Replacing shorter texts would remove ordinary words and
 * protect nothing.
 */
const MIN_LENGTH = 4
const MARK = '[redacted]'

/**
 * Replaces each secret in a text by `[redacted]`, also where it is URL-encoded, JSON-escaped, or in base64 or
 * base64url, alone or inside a longer encoded text such as `Basic` credentials. White space around a secret
 * is ignored, and so are secrets shorter than 4 characters.
 */
export function redactSecrets(text: string, secrets: readonly string[]): string {
  const ranges: { readonly start: number; readonly end: number }[] = []
  for (const form of secrets.flatMap((secret) => [...secretForms(secret)])) {
    let start = text.indexOf(form)
    while (start >= 0) {
      // `last` is the last occurrence that overlaps or touches the one at `start`; all occurrences between
      // the two are inside the same range.
      const last = text.lastIndexOf(form, start + form.length)
      ranges.push({ start, end: last + form.length })
      start = text.indexOf(form, last + 1)
    }
  }
  if (ranges.length === 0) return text
  // Overlapping ranges are replaced by one mark; if only one of two overlapping secrets were replaced, the
  // rest of the other would remain.
  let result = ''
  let position = 0
  for (const { start, end } of ranges.sort((a, b) => a.start - b.start)) {
    if (start >= position) result += text.slice(position, start) + MARK
    position = Math.max(position, end)
  }
  return result + text.slice(position)
}

/**
 * Returns the spellings of a secret that `redactSecrets` searches for, for other kinds of search, such as in
 * a stream. Returns an empty set for a secret shorter than 4 characters.
 */
export function secretForms(untrimmed: string): ReadonlySet<string> {
  const secret = untrimmed.trim()
  if (secret.length < MIN_LENGTH) return new Set()
  const bytes = new TextEncoder().encode(secret)
  // `encodeURIComponent` throws on a lone surrogate, so the secret is first converted to UTF-8 and back.
  const component = encodeURIComponent(new TextDecoder().decode(bytes))
  const query = new URLSearchParams({ q: secret }).toString().slice(2)
  return new Set([
    secret,
    JSON.stringify(secret).slice(1, -1),
    component,
    lowerEscapes(component),
    query,
    lowerEscapes(query),
    encodeBase64(bytes),
    encodeBase64(bytes).replace(/={1,2}$/, ''),
    encodeBase64Url(bytes),
    ...[0, 1, 2].flatMap((offset) => insideBase64(bytes, offset)),
  ])
}

function lowerEscapes(url: string): string {
  return url.replace(/%../g, (escape) => escape.toLowerCase())
}

/**
 * Returns the base64 and base64url characters that appear wherever `bytes` are encoded inside longer data.
 * Base64 encodes groups of three bytes, so these characters depend on `offset`: how many other bytes of the
 * first group come before `bytes`. Characters that also depend on neighbouring bytes are left out.
 */
function insideBase64(bytes: Uint8Array, offset: number): string[] {
  const padded = new Uint8Array(offset + bytes.length)
  padded.set(bytes, offset)
  const start = Math.ceil((offset * 8) / 6)
  const end = Math.floor((padded.length * 8) / 6)
  return [encodeBase64(padded).slice(start, end), encodeBase64Url(padded).slice(start, end)]
}
