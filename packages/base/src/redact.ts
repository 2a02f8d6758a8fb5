import { encodeBase64, encodeBase64Url } from './base64.ts'

/** Shorter secrets are ignored: they would blank out ordinary words and protect nothing. */
const MIN_LENGTH = 4
const MARK = '[redacted]'

/**
 * Replaces each secret in a text by `[redacted]`, also where it stands URL-encoded, JSON-escaped,
 * or in base64 or base64url, alone or inside something longer as in `Basic` credentials. White
 * space round a secret is not part of it; secrets shorter than 4 characters are ignored.
 */
export function redactSecrets(text: string, secrets: readonly string[]): string {
  const ranges: { readonly start: number; readonly end: number }[] = []
  for (const form of secrets.flatMap((secret) => [...secretForms(secret)])) {
    let start = text.indexOf(form)
    while (start >= 0) {
      // The last occurrence that touches this one; any between lie inside the same range.
      const last = text.lastIndexOf(form, start + form.length)
      ranges.push({ start, end: last + form.length })
      start = text.indexOf(form, last + 1)
    }
  }
  if (ranges.length === 0) return text
  // Overlapping ranges become one mark; otherwise the tail of one secret would show behind another.
  let redacted = ''
  let done = 0
  for (const { start, end } of ranges.sort((a, b) => a.start - b.start)) {
    if (start >= done) redacted += text.slice(done, start) + MARK
    done = Math.max(done, end)
  }
  return redacted + text.slice(done)
}

/**
 * The texts by which `redactSecrets` knows a secret, for searches of another kind, as in a stream.
 * None for a secret that it ignores.
 */
export function secretForms(untrimmed: string): ReadonlySet<string> {
  const secret = untrimmed.trim()
  if (secret.length < MIN_LENGTH) return new Set()
  const bytes = new TextEncoder().encode(secret)
  // `encodeURIComponent` throws on a lone surrogate, so it gets what UTF-8 makes of it.
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
    encodeBase64(bytes).replace(/=+$/, ''),
    encodeBase64Url(bytes),
    ...[0, 1, 2].flatMap((offset) => insideBase64(bytes, offset)),
  ])
}

function lowerEscapes(url: string): string {
  return url.replace(/%../g, (escape) => escape.toLowerCase())
}

/**
 * The characters that bytes give in base64 when `offset` bytes of a group come before them,
 * whatever those are.
 */
function insideBase64(bytes: Uint8Array, offset: number): string[] {
  const padded = new Uint8Array(offset + bytes.length)
  padded.set(bytes, offset)
  const start = Math.ceil((offset * 8) / 6)
  const end = Math.floor((padded.length * 8) / 6)
  return [encodeBase64(padded).slice(start, end), encodeBase64Url(padded).slice(start, end)]
}
