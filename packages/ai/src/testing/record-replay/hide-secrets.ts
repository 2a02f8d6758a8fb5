/** What stands in place of a secret. */
export const REDACTED = '[redacted]'

const secretHeader = /authorization|api-?key|token|secret|cookie|credential|password/

export function isSecretHeader(name: string): boolean {
  return secretHeader.test(name)
}

const secretQuery = /[?&](?:key|api[_-]?key|access_token|token)=([^&#]+)/gi

/** The secrets that a request carries in its headers and its address. */
export function secretsIn(address: string, headers: Headers): readonly string[] {
  const secrets: string[] = []
  headers.forEach((value, name) => {
    if (isSecretHeader(name)) secrets.push(value, value.replace(/^\w+ /, ''))
  })
  for (const [, value = ''] of address.matchAll(secretQuery)) secrets.push(value)
  return [...new Set(secrets)].filter(({ length }) => length >= 4)
}

export function hideIn(text: string, secrets: readonly string[]): string {
  let hidden = text
  for (const secret of longestFirst(secrets)) hidden = hidden.replaceAll(secret, REDACTED)
  return hidden
}

/**
 * Overwrites secrets in a body that came in pieces. Each byte of a secret becomes an asterisk, so
 * that all lengths, and with them the ends of the pieces, stay what they were.
 */
export function hideInChunks(
  chunks: readonly Uint8Array[],
  secrets: readonly string[],
): readonly Uint8Array[] {
  if (secrets.length === 0) return chunks
  const whole = joined(chunks)
  for (const secret of longestFirst(secrets)) overwrite(whole, new TextEncoder().encode(secret))
  let at = 0
  return chunks.map(({ length }) => whole.subarray(at, (at += length)))
}

function longestFirst(secrets: readonly string[]): readonly string[] {
  return secrets.toSorted((a, b) => b.length - a.length)
}

function joined(chunks: readonly Uint8Array[]): Uint8Array {
  const whole = new Uint8Array(chunks.reduce((sum, { length }) => sum + length, 0))
  let at = 0
  for (const chunk of chunks) {
    whole.set(chunk, at)
    at += chunk.length
  }
  return whole
}

const ASTERISK = 42

function overwrite(bytes: Uint8Array, secret: Uint8Array): void {
  const first = secret[0]!
  for (let at = bytes.indexOf(first); at >= 0; at = bytes.indexOf(first, at + 1)) {
    if (secret.every((byte, offset) => bytes[at + offset] === byte))
      bytes.fill(ASTERISK, at, at + secret.length)
  }
}
