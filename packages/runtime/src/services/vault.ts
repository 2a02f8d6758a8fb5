/** Seals secrets at rest and keeps them out of texts. */
export interface Vault {
  /** `context` (thread and variable) is bound to the sealed text: it opens nowhere else. */
  seal(secret: string, context: string): string
  open(sealed: string, context: string): string
  /** A redactor for texts and JSON of a thread with these secrets, also in base64 and URL-encoded. */
  redactor(secrets: Iterable<string>): Redactor
}

export interface Redactor {
  text(text: string): string
  /** A copy with every string redacted; the same object when nothing was found. */
  json<T>(value: T): T
  /** For streams: holds back what may be the beginning of a secret. */
  stream(): { push(text: string): string; end(): string }
}

/** The context by which a variable of a thread is sealed: it opens for this name in this thread alone. */
export function envContext(threadId: string, name: string): string {
  return `${threadId}/${name}`
}
