import type { EndpointDefinition } from '../definitions/types.ts'

interface Found {
  readonly endpoint: EndpointDefinition
  readonly params: Readonly<Record<string, string>>
}

/** The endpoint for a path: fixed segments win over `[name]`, and both over `[*]`. */
export function findEndpoint(
  endpoints: readonly EndpointDefinition[],
  method: string,
  path: string,
): Found | undefined {
  const segments = path.split('/')
  let best: (Found & { rank: string }) | undefined
  for (const endpoint of endpoints) {
    if (endpoint.method !== method) continue
    const match = matched(endpoint.path.replace(/^\/|\/$/g, '').split('/'), segments)
    if (match && (!best || match.rank < best.rank)) best = { endpoint, ...match }
  }
  return best && { endpoint: best.endpoint, params: best.params }
}

/** `rank` has one letter per segment: fixed before dynamic before catch-all, the leftmost counting most. */
function matched(
  pattern: readonly string[],
  segments: readonly string[],
): { params: Record<string, string>; rank: string } | undefined {
  const params: Record<string, string> = {}
  let rank = ''
  for (const [index, part] of pattern.entries()) {
    if (part === '[*]') {
      if (segments.length <= index) return undefined
      params['*'] = segments.slice(index).join('/')
      return { params, rank: `${rank}c` }
    }
    const segment = segments[index]
    const [, name] = /^\[(\w+)\]$/.exec(part) ?? []
    if (segment === undefined || segment === '' || (name === undefined && part !== segment))
      return undefined
    if (name !== undefined) params[name] = segment
    rank += name === undefined ? 'a' : 'b'
  }
  return pattern.length === segments.length ? { params, rank } : undefined
}
