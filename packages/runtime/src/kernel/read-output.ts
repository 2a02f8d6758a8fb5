import type { JsonValue } from '@skein/base'
import type { ResolvedSide } from '../definitions/resolved.ts'

/** An answer as data, or why it is not of the declared shape. */
export type Output = { readonly data: JsonValue } | { readonly problem: string }

/** Reads the answer of a side whose prompt declares an output. Undefined when it declares none. */
export async function readOutput(
  { prompt }: ResolvedSide,
  text: string,
): Promise<Output | undefined> {
  const { output } = prompt.definition
  if (!output) return undefined
  const parsed = parse(text)
  if ('problem' in parsed) return parsed
  const checked = await output['~standard'].validate(parsed.data)
  if (!checked.issues) return parsed
  const issues = checked.issues.map(({ message, path = [] }) => {
    const keys = path.map((part) => String(typeof part === 'object' ? part.key : part))
    return keys.length > 0 ? `${keys.join('.')}: ${message}` : message
  })
  return { problem: issues.join('; ') }
}

function parse(text: string): Output {
  try {
    return { data: JSON.parse(text) as JsonValue }
  } catch {
    return { problem: 'it is not JSON' }
  }
}
