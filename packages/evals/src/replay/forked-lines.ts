import { isPlainObject } from '@skein/base'

/** Marks an exported thread as a fork of another one, so that lists and Studio show them together. */
export function forkedLines(lines: string, original: string): string {
  const [header = '', first = '', ...rest] = lines.split('\n')
  const stored = JSON.parse(first) as {
    readonly seq: number
    readonly event: { readonly metadata?: unknown }
  }
  const before = isPlainObject(stored.event.metadata) ? stored.event.metadata : {}
  const metadata = { ...before, forked_from: { thread_id: original } }
  const event = { ...stored.event, metadata }
  return [header, JSON.stringify({ ...stored, event }), ...rest].join('\n')
}
