import { invalidMedia } from './media-error.ts'

/** An address a vendor can be asked to fetch. Anything local to this machine's programs is refused. */
export function checkedUrl(url: string): string {
  const parsed = URL.canParse(url) ? new URL(url) : undefined
  if (parsed?.protocol === 'https:' || parsed?.protocol === 'http:') return url
  // Google Cloud Storage and vendor file ids in URL form are addresses too.
  if (parsed?.protocol === 'gs:') return url
  throw invalidMedia(
    `${JSON.stringify(url.slice(0, 80))} is not an address that a vendor can fetch.`,
    'Use an http(s) URL, or fromPath, fromBytes or fromBase64 for data of your own.',
  )
}
