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
    return [...this.#token.inUse.map(({ token }) => token), this.#refused].filter(
      (secret) => secret !== undefined,
    )
  }

  protected override async headersFor(): Promise<Record<string, string>> {
    this.#check()
    const { token } = await this.#token.get()
    return { authorization: `Bearer ${token}` }
  }

  protected override learn(
    { status }: Refusal,
    { authorization }: Readonly<Record<string, string>>,
  ): boolean {
    if (status !== 401) return false
    const token = this.#token.current?.token
    // Another request has had the token replaced already, or is about to.
    if (`Bearer ${token}` !== authorization) return true
    // A token that was refused before and is loaded again was not refused because it ended.
    if (token === undefined || token === this.#refused) return false
    this.#refused = token
    this.#token.drop()
    return true
  }
}
