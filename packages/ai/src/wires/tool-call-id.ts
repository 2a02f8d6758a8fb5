/** The tool-call ids that a vendor accepts. */
export interface ToolCallIdRule {
  /** Must not be global or sticky, because such patterns keep a position from one `test` to the next. */
  readonly pattern: RegExp
  readonly maxLength: number
}

/**
 * Returns the id if the vendor accepts it, otherwise an id made from its hash. Equal ids give equal
 * hashes, so a call and its result still match.
 */
export function safeToolCallId(id: string, { pattern, maxLength }: ToolCallIdRule): string {
  if (id.length <= maxLength && pattern.test(id)) return id
  const hash = idHash(id)
  const candidate = `call_${hash}`.slice(0, Math.min(maxLength, 40))
  return pattern.test(candidate) && maxLength >= 16 ? candidate : hash.slice(0, maxLength)
}

/**
 * Returns a hash of 160 bits in hexadecimal: five rounds similar to FNV-1a, each with a different start
 * and factor. The hash only has to differ between the ids of one conversation, so it is not
 * cryptographic. SHA-256 would add a kilobyte to every application.
 */
function idHash(id: string): string {
  let hex = ''
  for (let round = 1; round <= 5; round++) {
    let hash = 0x811c9dc5 ^ Math.imul(round, 0x9e3779b9)
    for (let index = 0; index < id.length; index++)
      hash = Math.imul(hash ^ id.charCodeAt(index), 0x01000193 + (round << 10))
    hash = Math.imul(hash ^ (hash >>> 16), 0x85ebca6b)
    hex += ((hash ^ (hash >>> 13)) >>> 0).toString(16).padStart(8, '0')
  }
  return hex
}
