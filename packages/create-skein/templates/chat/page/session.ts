/**
 * The session of the person at this page. Vite serves the page in development, where `skein dev` asks no one for a
 * token; in production server/main.ts does, and signs people in.
 */
const needsToken = import.meta.env.MODE !== 'development'

/** The agents answer only with a token, and the person has to sign in to get one. */
export class SignedOut extends Error {}

/** A new token is fetched this long before the old one expires. */
const EARLY_MS = 60_000

let token: { readonly text: string; readonly until: number } | undefined

/** Returns the headers of requests to the agents. Throws `SignedOut` if the person has to sign in first. */
export async function authorization(): Promise<Record<string, string>> {
  if (!needsToken) return {}
  if (token === undefined || Date.now() > token.until - EARLY_MS) {
    const response = await fetch('/session/token', { method: 'POST' })
    if (response.status === 401) throw new SignedOut('Please sign in again.')
    if (!response.ok) throw new Error(`The page got no token (${response.status}). Try again.`)
    const { token: text, lastsMs } = (await response.json()) as { token: string; lastsMs: number }
    token = { text, until: Date.now() + lastsMs }
  }
  return { authorization: `Bearer ${token.text}` }
}

/** Whether the name and the password are right. If they are, the browser has a cookie for the next token. */
export async function signIn(name: string, password: string): Promise<boolean> {
  const response = await fetch('/session', {
    method: 'POST',
    headers: { 'content-type': 'application/json' },
    body: JSON.stringify({ name, password }),
  })
  if (!response.ok && response.status !== 401)
    throw new Error(`Signing in failed (${response.status}). Try again.`)
  return response.ok
}

/** Ends the session; undefined where there is none, in development. */
export const signOut: (() => Promise<void>) | undefined = needsToken
  ? async () => {
      await fetch('/session', { method: 'DELETE' })
      location.assign('/') // without the chat in the address
    }
  : undefined
