import { SkeinError } from '@skein/base'

/** A key that cannot be used. Never repeats any part of it. */
export function keyError(message: string): SkeinError {
  return new SkeinError(message, {
    code: 'KEY_INVALID',
    hint: 'Keys are JWKs: kty "OKP" with crv "Ed25519", or kty "EC" with crv "P-256".',
  })
}
