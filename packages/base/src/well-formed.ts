/**
 * Replaces each half of a surrogate pair that is alone by U+FFFD. Such halves appear where a text was cut
 * between two characters of an emoji; several vendors refuse a request with one.
 *
 * Every engine has had `toWellFormed` since 2023, but the library types of ES2023 do not list it.
 */
export function wellFormed(text: string): string {
  return (text as string & { toWellFormed(): string }).toWellFormed()
}

/** In JSON text that `JSON.stringify` wrote: an escaped backslash, or the escape of a lone surrogate. */
const loneSurrogate = /\\\\|\\ud[89a-f][0-9a-f]{2}/g

/** Does the same inside JSON text that `JSON.stringify` wrote, where only lone surrogates are written as `\ud…`. */
export function wellFormedJson(json: string): string {
  if (!json.includes('\\ud')) return json
  return json.replace(loneSurrogate, (found) => (found === '\\\\' ? found : '\uFFFD'))
}
