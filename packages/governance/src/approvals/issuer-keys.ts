import { SkeinError } from '@skein/base'
import { toVerifyKey } from '../keys/keys.ts'
import type { KeyAlgorithm, PublicJwk, VerifyKey } from '../keys/keys.ts'

/** A public key of an issuer in any form we can check with. */
export type IssuerKey = PublicJwk | VerifyKey | CryptoKey

/**
 * Finds an issuer's keys by `kid`. A `kid` picks among keys that have one; it is a hint and proves
 * nothing. Keys without a name are always tried.
 */
export function createIssuerKeys(
  issuer: string,
  keys: readonly IssuerKey[],
  alg: KeyAlgorithm,
): (kid: unknown) => Promise<readonly VerifyKey[]> {
  const plain = keys.flatMap((key) => (isCryptoKey(key) ? [] : [named(key)]))
  for (const { key } of plain) if (key.alg !== alg) throw wrongAlgorithm(issuer, key.alg, alg)
  let all: Promise<readonly NamedKey[]> | undefined
  return async (kid) => {
    all ??= Promise.all(
      keys.filter(isCryptoKey).map((key) => fromCryptoKey(issuer, key, alg)),
    ).then((exported) => [...plain, ...exported])
    const known = await all
    return known
      .filter(({ name }) => name === undefined || kid === undefined || name === kid)
      .map(({ key }) => key)
  }
}

interface NamedKey {
  readonly name: string | undefined
  readonly key: VerifyKey
}

function named(key: PublicJwk | VerifyKey): NamedKey {
  return { name: key.kid, key: toVerifyKey(key) }
}

function isCryptoKey(key: IssuerKey): key is CryptoKey {
  return typeof CryptoKey === 'function' && key instanceof CryptoKey
}

async function fromCryptoKey(issuer: string, key: CryptoKey, alg: KeyAlgorithm): Promise<NamedKey> {
  const jwk = (await crypto.subtle.exportKey('jwk', key)) as unknown as PublicJwk
  const { kty, crv, x, y } = jwk
  const found = toVerifyKey(y === undefined ? { kty, crv, x } : { kty, crv, x, y })
  if (found.alg !== alg || key.type !== 'public') throw wrongAlgorithm(issuer, found.alg, alg)
  return { name: undefined, key: found }
}

function wrongAlgorithm(issuer: string, found: string, wanted: string): SkeinError {
  return new SkeinError(`Issuer "${issuer}" is set to ${wanted}, but has a key for ${found}.`, {
    code: 'KEY_INVALID',
    hint: `Set alg: '${found}' for the issuer, or give it public keys of one kind.`,
  })
}
