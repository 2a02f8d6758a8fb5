import { expect } from 'vitest'
import type { Loss } from '../src/issue.ts'

/**
 * A value without what a conversion reported as lost. If the report is honest, all that remains is found again in what
 * the way back gives. `null` counts as absent; what "becomes" something else is still there, as something.
 */
export function withoutLost(value: unknown, lost: readonly Loss[], pointer = ''): unknown {
  const gone = new Map(lost.map((loss) => [loss.pointer, loss.reason]))
  return prune(value, gone, pointer)
}

function prune(value: unknown, gone: ReadonlyMap<string, string>, pointer: string): unknown {
  if (Array.isArray(value)) {
    return value.flatMap((item, index) => {
      const place = `${pointer}/${index}`
      if (gone.get(place)?.startsWith('it becomes')) return [expect.anything() as unknown]
      return gone.has(place) ? [] : [prune(item, gone, place)]
    })
  }
  if (typeof value !== 'object' || value === null) return value
  return Object.fromEntries(
    Object.entries(value).flatMap(([key, field]) => {
      const place = `${pointer}/${key}`
      return gone.has(place) || field === null ? [] : [[key, prune(field, gone, place)]]
    }),
  )
}
