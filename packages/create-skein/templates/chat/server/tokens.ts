import { jwtVerify, SignJWT } from 'jose'

/** A `session` is the cookie of a browser that has signed in; with `agents` its page calls the agents. */
export type Purpose = 'session' | 'agents'

/** A token for the agents lasts minutes, because a page can always ask for the next one. */
export const LIFETIME_SECONDS: Readonly<Record<Purpose, number>> = {
  session: 7 * 24 * 3600,
  agents: 10 * 60,
}

/** Signs tokens of users and reads them. server/main.ts and skein.config.ts share the secret. */
export interface Tokens {
  sign(user: string, purpose: Purpose): Promise<string>
  /** Returns the user of a token; undefined if it has expired, was changed, or has the other purpose. */
  userOf(token: string, purpose: Purpose): Promise<string | undefined>
}

export function createTokens(secret: string): Tokens {
  if (secret.length < 32)
    throw new Error('TOKEN_SECRET is shorter than 32 characters. Make one: openssl rand -hex 32')
  const key = new TextEncoder().encode(secret)
  return {
    sign: (user, purpose) =>
      new SignJWT()
        .setProtectedHeader({ alg: 'HS256' })
        .setSubject(user)
        .setAudience(purpose)
        .setExpirationTime(Math.floor(Date.now() / 1000) + LIFETIME_SECONDS[purpose])
        .sign(key),
    async userOf(token, purpose) {
      try {
        const { payload } = await jwtVerify(token, key, {
          algorithms: ['HS256'],
          audience: purpose,
          requiredClaims: ['exp'],
        })
        return payload.sub
      } catch {
        return undefined // jose throws for every token that it does not accept
      }
    },
  }
}
