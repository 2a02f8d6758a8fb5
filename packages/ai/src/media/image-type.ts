/** The MIME type that the first bytes of an image tell. */
export function imageTypeOf(bytes: Uint8Array): string | undefined {
  const head = latin1(bytes.subarray(0, 32))
  if (head.startsWith('\x89PNG\r\n\x1a\n')) return 'image/png'
  if (head.startsWith('\xff\xd8\xff')) return 'image/jpeg'
  if (head.startsWith('GIF87a') || head.startsWith('GIF89a')) return 'image/gif'
  if (head.startsWith('RIFF') && head.slice(8, 12) === 'WEBP') return 'image/webp'
  if (head.startsWith('BM')) return 'image/bmp'
  if (head.startsWith('II*\0') || head.startsWith('MM\0*')) return 'image/tiff'
  if (head.slice(4, 8) === 'ftyp') return brandTypes[head.slice(8, 12)]
  return /^\s*<(\?xml|svg)/.test(head) ? 'image/svg+xml' : undefined
}

const brandTypes: Readonly<Record<string, string>> = {
  avif: 'image/avif',
  avis: 'image/avif',
  heic: 'image/heic',
  heix: 'image/heic',
  mif1: 'image/heif',
  msf1: 'image/heif',
}

const nameTypes: Readonly<Record<string, string>> = {
  png: 'image/png',
  jpg: 'image/jpeg',
  jpeg: 'image/jpeg',
  gif: 'image/gif',
  webp: 'image/webp',
  bmp: 'image/bmp',
  tif: 'image/tiff',
  tiff: 'image/tiff',
  avif: 'image/avif',
  heic: 'image/heic',
  heif: 'image/heif',
  svg: 'image/svg+xml',
}

/** The MIME type that the end of a name suggests. */
export function imageTypeOfName(name: string): string | undefined {
  const ending = /\.([a-z]+)$/i.exec(name)?.[1]?.toLowerCase()
  return ending !== undefined && Object.hasOwn(nameTypes, ending) ? nameTypes[ending] : undefined
}

function latin1(bytes: Uint8Array): string {
  return String.fromCharCode(...bytes)
}
