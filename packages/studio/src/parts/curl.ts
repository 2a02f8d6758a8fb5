/** Returns a request as a `curl` command. The API key appears only as the name of a shell variable. */
export function curlText({
  method = 'GET',
  url,
  needsKey,
  mediaType,
  body = '',
}: {
  readonly method?: string
  readonly url: string
  readonly needsKey: boolean
  readonly mediaType?: string
  readonly body?: string
}): string {
  const parts = ['curl']
  if (method !== 'GET') parts.push('-X', method)
  parts.push(quoted(url))
  if (needsKey) parts.push('-H "authorization: Bearer $SKEIN_KEY"')
  if (mediaType !== undefined && body !== '')
    parts.push('-H', quoted(`content-type: ${mediaType}`), '--data-binary', quoted(compact(body)))
  return parts.join(' ')
}

function compact(text: string): string {
  try {
    return JSON.stringify(JSON.parse(text))
  } catch {
    return text
  }
}

function quoted(text: string): string {
  return `'${text.replaceAll("'", `'\\''`)}'`
}
