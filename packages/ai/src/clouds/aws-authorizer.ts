import type { Clock } from '@skein/base'
import {
  AuthorizedRequests,
  type Refusal,
  type UnauthorizedRequest,
} from './authorized-requests.ts'
import type { AwsCredentials } from './aws-credentials.ts'
import { signatureHeaders } from './aws-signature.ts'
import { ExpiringValue } from './expiring.ts'

/** Credentials are renewed this long before they end. */
const EARLY_MS = 5 * 60_000
/** A difference between two clocks that a signature survives. */
const SMALL_SKEW_MS = 60_000

/** What an authorizer signs with. */
export interface AwsAuthorizerOptions {
  readonly credentials: () => Promise<AwsCredentials>
  readonly region: () => Promise<string>
  readonly service: string
  readonly clock: Clock
}

/** Signs requests with AWS Signature Version 4, by the clock of AWS once a refusal has told it. */
export class AwsAuthorizer extends AuthorizedRequests {
  readonly #options: AwsAuthorizerOptions
  readonly #credentials: ExpiringValue<AwsCredentials>
  /** What AWS's clock shows more than ours, in milliseconds. */
  #skewMs = 0

  constructor(options: AwsAuthorizerOptions) {
    super()
    this.#options = options
    this.#credentials = new ExpiringValue(options.credentials, options.clock, EARLY_MS)
  }

  override get secrets(): readonly string[] {
    return this.#credentials.inUse
      .flatMap(({ secretAccessKey, sessionToken }) => [secretAccessKey, sessionToken])
      .filter((secret) => secret !== undefined)
  }

  protected override async headersFor({
    url,
    method,
    headers,
    body,
  }: UnauthorizedRequest): Promise<Record<string, string>> {
    const { region, service, clock } = this.#options
    const keys = await this.#credentials.get()
    const signed = Object.fromEntries(
      Object.entries(headers).filter(([name]) => !unsigned.has(name)),
    )
    return signatureHeaders({
      method,
      url,
      headers: signed,
      body,
      keys,
      service,
      region: await region(),
      now: clock.now() + this.#skewMs,
    })
  }

  protected override learn(
    { headers, text }: Refusal,
    refused: Readonly<Record<string, string>>,
  ): boolean {
    const refusal = `${headers.get('x-amzn-errortype') ?? ''} ${text}`
    if (/ExpiredToken/.test(refusal)) {
      const { sessionToken } = this.#credentials.current ?? {}
      if (sessionToken === refused['x-amz-security-token']) this.#credentials.drop()
      return true
    }
    if (
      !/RequestTimeTooSkewed|RequestExpired|RequestInTheFuture|InvalidSignature|SignatureDoesNotMatch|AuthFailure/.test(
        refusal,
      )
    )
      // prettier-ignore
      return false
    const serverTime = Date.parse(headers.get('date') ?? '')
    if (Number.isNaN(serverTime)) return false
    // A signature that is wrong for another reason is as wrong with the other clock.
    if (Math.abs(serverTime - signatureTime(refused)) < SMALL_SKEW_MS) return false
    this.#skewMs = serverTime - this.#options.clock.now()
    return true
  }
}

/** Returns the time of a signature in milliseconds; `x-amz-date` is `20261119T101112Z`. */
function signatureTime({ 'x-amz-date': date = '' }: Readonly<Record<string, string>>): number {
  return Date.parse(date.replace(/^(\d{4})(\d\d)(\d\dT\d\d)(\d\d)(\d\d)Z$/, '$1-$2-$3:$4:$5Z'))
}

/** Headers that a proxy may change, or that the client adds after the signature. */
const unsigned: ReadonlySet<string> = new Set([
  'user-agent',
  'connection',
  'expect',
  'transfer-encoding',
  'x-amzn-trace-id',
])
