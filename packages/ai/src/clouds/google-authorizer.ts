import type { Clock } from '@skein/base'
import { AuthorizedRequests, type Refusal } from './authorized-requests.ts'
import { ExpiringValue } from './expiring.ts'
import type { GoogleToken } from './google-token.ts'

/** Tokens are renewed this long before they end. */
const EARLY_MS = 5 * 60_000

/** Sends an access token with each request, and renews it before it ends or when it is refused. */
export class GoogleAuthorizer extends AuthorizedRequests {
  readonly #token: ExpiringValue<GoogleToken>
  readonly #check: () => void
  #refused: string | undefined

  /** `check` throws if a request cannot be sent, e.g. because no project is set. */
  constructor(load: () => Promise<GoogleToken>, clock: Clock, check: () => void) {
    super()
    this.#token = new ExpiringValue(load, clock, EARLY_MS)
    this.#check = check
  }

  override get secrets(): readonly string[] {
    const { token } = this.#token.current ?? {}
    return [token, this.#refused].filter((secret) => secret !== undefined)
  }

  protected override async headersFor(): Promise<Record<string, string>> {
    this.#check()
    const { token } = await this.#token.get()
    return { authorization: `Bearer ${token}` }
  }

  protected override learn({ status }: Refusal): boolean {
    // A token that is as good as new was not refused because it ended.
    const token = this.#token.current?.token
    if (status !== 401 || token === undefined || token === this.#refused) return false
    this.#refused = token
    this.#token.drop()
    return true
  }
}
