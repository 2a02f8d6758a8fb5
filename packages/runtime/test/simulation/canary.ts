import { encodeBase64, encodeBase64Url } from '@skein/base'
import type { Chance } from './chance.ts'

/** A secret that must appear nowhere, and every form of it that is looked for. */
export interface Canary {
  readonly secret: string
  /** One of its forms, as a careless tool would print it. */
  leak(chance: Chance): string
  /** The form found in the text, if there is one. */
  find(text: string): string | undefined
}

const bytes = (text: string) => new TextEncoder().encode(text)

export function canaryOf(chance: Chance): Canary {
  const letters = Array.from({ length: 20 }, () =>
    chance.pick([...'abcdefghkmnpqrstuvwxyz23456789']),
  )
  const secret = `cnry-${letters.join('')}/+ ="q`
  const shifted = [0, 1, 2].map((by) => bytes('x'.repeat(by) + secret))
  // Whole groups of three bytes, wherever the secret falls in them.
  const cores = shifted.flatMap((text, by) => {
    const skip = by === 0 ? 0 : 4
    const to = Math.floor(text.length / 3) * 4
    return [encodeBase64(text).slice(skip, to), encodeBase64Url(text).slice(skip, to)]
  })
  const hex = Buffer.from(secret).toString('hex')
  const forms = new Set([
    secret,
    letters.join(''),
    JSON.stringify(secret).slice(1, -1),
    encodeURIComponent(secret),
    ...cores,
    hex,
    hex.toUpperCase(),
  ])
  return {
    secret,
    leak: (given) =>
      given.pick([
        secret,
        secret,
        `key=${secret};`,
        encodeBase64(bytes(secret)),
        encodeBase64(bytes(`user:${secret}`)),
        encodeBase64Url(bytes(secret)),
        encodeURIComponent(secret),
        hex,
      ]),
    find: (text) => [...forms].find((form) => text.includes(form)),
  }
}
