import { isPlainObject, type Clock } from '@skein/base'

/** A public key as JSON (RFC 7517). */
export type Jwk = JsonWebKey & { readonly kid?: string; readonly alg?: string }

/** How a signature is checked, and which keys can have made it. */
export interface JwtAlgorithm {
  /** As heads of tokens and keys name it. */
  readonly names: readonly string[]
  readonly kty: string
  readonly crv?: string
  readonly import: RsaHashedImportParams | EcKeyImportParams | AlgorithmIdentifier
  readonly verify: EcdsaParams | AlgorithmIdentifier
}

const ALGORITHMS: readonly JwtAlgorithm[] = [
  {
    names: ['RS256'],
    kty: 'RSA',
    import: { name: 'RSASSA-PKCS1-v1_5', hash: 'SHA-256' },
    verify: 'RSASSA-PKCS1-v1_5',
  },
  {
    names: ['ES256'],
    kty: 'EC',
    crv: 'P-256',
    import: { name: 'ECDSA', namedCurve: 'P-256' },
    verify: { name: 'ECDSA', hash: 'SHA-256' },
  },
  { names: ['EdDSA', 'Ed25519'], kty: 'OKP', crv: 'Ed25519', import: 'Ed25519', verify: 'Ed25519' },
]

/** The algorithm of a token's head. `none` and everything symmetric are unknown here. */
export function algorithmOf(name: unknown): JwtAlgorithm | undefined {
  return ALGORITHMS.find(({ names }) => typeof name === 'string' && names.includes(name))
}

/** Keys are read again after this time, or when a token names one that is not there. */
const MAX_AGE_MS = 600_000
/** But not more often than this, or tokens with made-up key ids would hammer the issuer. */
const MIN_AGE_MS = 30_000

export type FindKeys = (wanted: {
  readonly algorithm: JwtAlgorithm
  readonly kid: unknown
}) => Promise<readonly CryptoKey[]>

/** The keys that may have signed a token: by id where it names one, and always by kind. */
export function keySource(
  jwks: string | { readonly keys: readonly Jwk[] },
  { clock, fetch }: { readonly clock: Clock; readonly fetch: typeof globalThis.fetch },
): FindKeys {
  let keys: readonly Jwk[] = typeof jwks === 'string' ? [] : jwks.keys
  let readAt = typeof jwks === 'string' ? -Infinity : Infinity
  let reading: Promise<void> | undefined
  const imported = new WeakMap<Jwk, Promise<CryptoKey>>()

  const refresh = async (): Promise<void> => {
    if (typeof jwks !== 'string') return
    readAt = clock.now()
    keys = (await fetchKeys(jwks, fetch)) ?? keys
  }
  const importOnce = (key: Jwk, algorithm: JwtAlgorithm): Promise<CryptoKey> => {
    const ready = imported.get(key) ?? importKey(key, algorithm)
    imported.set(key, ready)
    return ready
  }
  return async ({ algorithm, kid }) => {
    const matching = (): readonly Jwk[] => keys.filter((key) => fits(key, algorithm, kid))
    const age = clock.now() - readAt
    if (age > MAX_AGE_MS || (matching().length === 0 && age > MIN_AGE_MS))
      await (reading ??= refresh().finally(() => (reading = undefined)))
    const found = await Promise.allSettled(matching().map((key) => importOnce(key, algorithm)))
    return found.flatMap((key) => (key.status === 'fulfilled' ? [key.value] : []))
  }
}

function fits(key: Jwk, { names, kty, crv }: JwtAlgorithm, kid: unknown): boolean {
  if (key.kty !== kty || (crv !== undefined && key.crv !== crv)) return false
  if ((key.alg !== undefined && !names.includes(key.alg)) || (key.use ?? 'sig') !== 'sig')
    return false
  return kid === undefined || key.kid === kid
}

function importKey(key: Jwk, algorithm: JwtAlgorithm): Promise<CryptoKey> {
  // Only the public parts: a private key that was put there by mistake is not used as one.
  const { kty, n, e, x, y, crv } = key
  const jwk = Object.fromEntries(
    Object.entries({ kty, n, e, x, y, crv }).filter(([, value]) => value !== undefined),
  )
  return crypto.subtle.importKey('jwk', jwk, algorithm.import, false, ['verify'])
}

/** Undefined when the issuer cannot be reached: the keys that are known stay. */
async function fetchKeys(
  url: string,
  fetch: typeof globalThis.fetch,
): Promise<readonly Jwk[] | undefined> {
  try {
    const response = await fetch(url, {
      headers: { accept: 'application/json' },
      redirect: 'error',
      signal: AbortSignal.timeout(5000),
    })
    const body: unknown = response.ok ? await response.json() : undefined
    const list = isPlainObject(body) ? body['keys'] : undefined
    return Array.isArray(list) ? (list.filter(isPlainObject) as unknown as Jwk[]) : undefined // checked when they are imported
  } catch {
    return undefined // nobody is let in by a key that could not be read
  }
}
