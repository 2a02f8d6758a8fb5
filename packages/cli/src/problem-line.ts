import type { Problem } from '@skein/runtime'

/** A problem with its file and field. */
export function problemLine({ subject, field, message, file }: Problem): string {
  const place = file === undefined || file === subject ? subject : `${file}: ${subject}`
  return `${place}: ${field === '' ? '' : `${field}: `}${message}`
}
