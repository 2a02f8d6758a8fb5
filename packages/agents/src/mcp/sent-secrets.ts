import { redactCause, secretsOf } from '@skein/ai/engine'

/** How many secrets are kept. A function of headers may give another token for each request. */
const MAX_SECRETS = 50

/**
 * The secrets that a connection has sent. A server may quote them when it refuses a request, and the error of a call
 * reaches the model, the events and the logs.
 */
export class SentSecrets {
  #secrets: readonly string[] = []

  /** Adds the values that are credentials by their names: of headers, of variables, of a query. */
  add(named: Readonly<Record<string, string>>): void {
    const newest = secretsOf(undefined, named)
    if (newest.every((secret) => this.#secrets.includes(secret))) return
    this.#secrets = [...new Set([...newest, ...this.#secrets])].slice(0, MAX_SECRETS)
  }

  /** Returns the error without the secrets; the same error if it has none. */
  removeFrom(error: unknown): unknown {
    return redactCause(error, this.#secrets)
  }
}
