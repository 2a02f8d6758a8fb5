import { encodeBase64, encodeBase64Url } from './base64.ts'

/** Shorter secrets are ignored: they would blank out ordinary words and protect nothing. */
const MIN_LENGTH = 4
const MARK = '[redacted]'

/**
 * Replaces each secret in a text by `[redacted]`, also where it stands URL-encoded, in base64, in
 * base64url or JSON-escaped. Secrets shorter than 4 characters are ignored.
 */
export function redactSecrets(text: string, secrets: readonly string[]): string {
  const ranges = secrets
    .filter((secret) => secret.length >= MIN_LENGTH)
    .flatMap(formsOf)
    .flatMap((form) => occurrences(text, form))
    .sort((a, b) => a.start - b.start)
  return ranges.length === 0 ? text : cutOut(text, ranges)
}

interface Range {
  readonly start: number
  readonly end: number
}

function formsOf(secret: string): string[] {
  const bytes = new TextEncoder().encode(secret)
  const url = encodeURIComponent(secret.replace(/\p{Surrogate}/gu, '\ufffd'))
  const lowerHex = url.replace(/%../g, (escape) => escape.toLowerCase())
  const base64 = encodeBase64(bytes).replace(/=+$/, '')
  const json = JSON.stringify(secret).slice(1, -1)
  return [
    ...new Set([
      secret,
      url,
      lowerHex,
      url.replaceAll('%20', '+'),
      base64,
      encodeBase64Url(bytes),
      json,
    ]),
  ]
}

function occurrences(text: string, form: string): Range[] {
  const ranges: Range[] = []
  let start = text.indexOf(form)
  while (start >= 0) {
    // The last occurrence that touches this one; those between lie inside the same range.
    const last = text.lastIndexOf(form, start + form.length)
    ranges.push({ start, end: last + form.length })
    start = text.indexOf(form, last === start ? start + form.length : last + 1)
  }
  return ranges
}

/** Overlapping ranges become one mark, or the tail of one secret would show behind another. */
function cutOut(text: string, ranges: readonly Range[]): string {
  let result = ''
  let done = 0
  for (const { start, end } of ranges) {
    if (start >= done) result += text.slice(done, start) + MARK
    done = Math.max(done, end)
  }
  return result + text.slice(done)
}
