import { globSync, readFileSync } from 'node:fs'
import { join } from 'node:path'

const source = join(import.meta.dirname, '../../src')

/** The writes of an ordinary turn that join one commit. */
export const joinedPoints: readonly string[] = [
  'answer+call_start',
  'answer+session_end',
  'answer+session_end+park',
  'answer+turn_end',
  'call_end+session_end+park',
  'call_end+step_end',
  'session_end+park',
]

/** Commits of requests about standing grants. People make them while threads work. */
export const grantPoints: readonly string[] = ['make_grant', 'revoke_grant']

/** Commits of a drain that change only the row of its thread. */
const rowPoints: readonly string[] = ['charge', 'quarantined', 'survived']

/** Points at which no drain of the simulation commits: its models have no rule of residency. */
const unusedPoints: readonly string[] = ['residency']

/** A point of the source, and the file below `src` that has it. */
interface NamedPoint {
  readonly file: string
  readonly point: string
}

/** Every commit of the runtime's source that is given its point as a text. */
export function namedPoints(): readonly NamedPoint[] {
  return globSync('**/*.ts', { cwd: source }).flatMap((file) => {
    if (file.includes('.test') || file.startsWith('testing')) return []
    const text = readFileSync(join(source, file), 'utf8')
    return [...text.matchAll(/\bcommit\(\s*['"`]([a-z_]+)['"`]/g)].map(([, point]) => ({
      file,
      point: point!,
    }))
  })
}

/** Every point at which a drain commits, read from the source: a new one must be crashed at too. */
export function kernelPoints(): string[] {
  const named = namedPoints()
    .filter(({ file, point }) => !isOfLimits(file) && !unusedPoints.includes(point))
    .map(({ point }) => point)
  const hooks = ['hook_after_tool_call_success', 'hook_after_thread_created']
  return [...new Set([...named, ...hooks])].toSorted()
}

/** Limits on spending count for all threads; no drain writes them with its thread. */
export function isOfLimits(file: string): boolean {
  return file.startsWith('limits')
}

/** Returns a predicate: whether a drain may commit at a point, which may be several that were joined. */
export function knownPoints(): (point: string) => boolean {
  const known = new Set([...kernelPoints(), ...rowPoints, ...unusedPoints])
  return (point) => point.split('+').every((name) => known.has(name))
}
