/** Whether `METHOD URL` fits a pattern such as `POST https://*.example.com/events*`; a pattern without a method fits all. */
export function fitsRequest(
  pattern: string,
  { method, url }: { readonly method: string; readonly url: string },
): boolean {
  const [, wantedMethod, wantedUrl = pattern] = /^([A-Z]+) +(\S+)$/.exec(pattern.trim()) ?? []
  if (wantedMethod !== undefined && wantedMethod !== method.toUpperCase()) return false
  const parts = wantedUrl.split('*').map((part) => part.replaceAll(/[.*+?^${}()|[\]\\]/g, '\\$&'))
  return new RegExp(`^${parts.join('.*')}$`).test(url)
}

/** Whether a name or an address is this machine. */
export function isThisMachine(host: string): boolean {
  const name = host.toLowerCase().replace(/^\[|\]$/g, '')
  return (
    name === '' ||
    name === 'localhost' ||
    name.endsWith('.localhost') ||
    name === '::1' ||
    name === '0.0.0.0' ||
    /^(?:::ffff:)?127\.\d+\.\d+\.\d+$/.test(name)
  )
}
