import { SkeinError } from '@skein/base'
import { type KeyAlgorithm, type PublicJwk, toVerifyKey, type VerifyKey } from '../keys/keys.ts'

/** A public key of an issuer, in any of the supported forms. */
export type IssuerKey = PublicJwk | VerifyKey | CryptoKey

/**
 * Returns a function that finds an issuer's keys by `kid`. The `kid` only reduces the number of keys to
 * try and proves nothing. Keys without a `kid` are always tried.
 */
export function createIssuerKeys(
  issuer: string,
  keys: readonly IssuerKey[],
  alg: KeyAlgorithm,
): (kid: unknown) => Promise<readonly VerifyKey[]> {
  const plain = keys.flatMap((key): NamedKey[] =>
    isCryptoKey(key) ? [] : [{ name: key.kid, key: toVerifyKey(key) }],
  )
  for (const { key } of plain) if (key.alg !== alg) throw wrongAlgorithm(issuer, key.alg, alg)
  let all: Promise<readonly NamedKey[]> | undefined
  return async (kid) => {
    all ??= Promise.all(
      keys.filter(isCryptoKey).map((key) => fromCryptoKey(issuer, key, alg)),
    ).then((exported) => [...plain, ...exported])
    const namedKeys = await all
    return namedKeys
      .filter(({ name }) => name === undefined || kid === undefined || name === kid)
      .map(({ key }) => key)
  }
}

interface NamedKey {
  readonly name: string | undefined
  readonly key: VerifyKey
}

function isCryptoKey(key: IssuerKey): key is CryptoKey {
  return typeof CryptoKey === 'function' && key instanceof CryptoKey
}

async function fromCryptoKey(issuer: string, key: CryptoKey, alg: KeyAlgorithm): Promise<NamedKey> {
  const jwk = (await crypto.subtle.exportKey('jwk', key)) as unknown as PublicJwk
  const { kty, crv, x, y } = jwk
  const verifyKey = toVerifyKey(y === undefined ? { kty, crv, x } : { kty, crv, x, y })
  if (verifyKey.alg !== alg || key.type !== 'public')
    throw wrongAlgorithm(issuer, verifyKey.alg, alg)
  return { name: undefined, key: verifyKey }
}

function wrongAlgorithm(issuer: string, found: string, wanted: string): SkeinError {
  return new SkeinError(`Issuer "${issuer}" is set to ${wanted}, but has a key for ${found}.`, {
    code: 'KEY_INVALID',
    hint: `Set alg: '${found}' for the issuer, or give it public keys of one kind.`,
  })
}
