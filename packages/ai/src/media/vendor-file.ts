import { invalidValue } from '../contract/error.ts'

/** A file that was uploaded to a vendor, which alone knows it. */
export interface VendorFile {
  /** The name of the provider, e.g. `anthropic`. */
  readonly provider: string
  /** The vendor's id of the file; for Google its name (`files/abc`) or address. */
  readonly fileId: string
}

/**
 * Returns the address of an uploaded file. UPP §6.5 has no source for such a file, so it is an address with a scheme
 * of its own: it can be stored and sent like every other, and the wires write it in the vendor's form.
 */
export function fileAddress({ provider, fileId }: VendorFile): string {
  if (
    typeof provider !== 'string' ||
    provider === '' ||
    typeof fileId !== 'string' ||
    fileId === ''
  )
    throw invalidValue(
      'An uploaded file needs the name of its provider and its id.',
      "Write Document.fromUpload({ provider: 'anthropic', fileId: 'file_…' }).",
    )
  return `upload:${encodeURIComponent(provider)}/${encodeURIComponent(fileId)}`
}

/** Reads the address of an uploaded file; undefined for any other address. */
export function vendorFileOf(url: string): VendorFile | undefined {
  const parts = /^upload:([^/]+)\/(.+)$/.exec(url)
  if (!parts) return undefined
  try {
    return { provider: decodeURIComponent(parts[1]!), fileId: decodeURIComponent(parts[2]!) }
  } catch {
    return undefined // a malformed escape: not written here
  }
}
