import type { ResolvedPrompt } from '../resolved.ts'
import { find, type Catalog, type Entry } from './gather.ts'
import { at, report, type Place } from './place.ts'
import type { ReadPrompt } from './read-prompt.ts'

type Part = ResolvedPrompt['parts'][number]

/** What a prompt says, with everything it includes put in its place. */
export interface Unfolded {
  readonly parts: readonly { readonly part: Part; readonly place: Place }[]
  /** The prompt itself and all that it includes. */
  readonly prompts: ReadonlySet<Entry<ReadPrompt>>
}

/** More parts than this are a mistake: includes that double with every level. */
const MAX_PARTS = 10_000

/** Unfolds prompts. Each is looked at once, so that each problem is told once. */
export function partsResolver(catalog: Catalog): (entry: Entry<ReadPrompt>) => Unfolded {
  const known = new Map<Entry<ReadPrompt>, Unfolded>()
  const path: Entry<ReadPrompt>[] = []

  function unfold(entry: Entry<ReadPrompt>): Unfolded {
    const earlier = known.get(entry)
    if (earlier) return earlier
    path.push(entry)
    const parts: { part: Part; place: Place }[] = []
    const prompts = new Set([entry])
    const { prompt = [] } = entry.read
    const place = at(entry.place, 'prompt')
    const list = typeof prompt === 'string' ? [{ type: 'text' as const, content: prompt }] : prompt
    for (const [index, part] of list.entries()) {
      if (part === undefined) continue
      const here = typeof prompt === 'string' ? place : at(place, index)
      if (part.type !== 'include') {
        parts.push({ part, place: here })
        continue
      }
      const included = include(part.prompt, at(here, 'prompt'))
      if (!included) continue
      for (const other of included.prompts) prompts.add(other)
      if (parts.length + included.parts.length > MAX_PARTS) {
        report(here, `makes a prompt of more than ${MAX_PARTS} parts`)
        continue
      }
      parts.push(...included.parts)
    }
    path.pop()
    const unfolded = { parts, prompts }
    known.set(entry, unfolded)
    return unfolded
  }

  function include(reference: string | object | undefined, place: Place): Unfolded | undefined {
    const target = find(catalog.prompt, reference, { kind: 'prompt', place })
    if (!target) return undefined
    const start = path.indexOf(target)
    if (start < 0) return unfold(target)
    const names = [...path.slice(start), target].map(({ name }) => name ?? '?')
    return report(place, `prompts include each other: ${names.join(' → ')}`)
  }

  return unfold
}
