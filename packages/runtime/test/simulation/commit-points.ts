import { globSync, readFileSync } from 'node:fs'
import { join } from 'node:path'

const source = join(import.meta.dirname, '../../src')

/** Where a drain commits: the folders whose functions are given a `DrainContext`. */
const committing = '{actions,calls,children,hooks,loop,model,recovery,session,thread}/*.ts'

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

/** Every point at which a drain commits, read from the source: a new one must be crashed at too. */
export function kernelPoints(): string[] {
  const named = globSync(committing, { cwd: source }).flatMap((file) => {
    if (file.includes('.test')) return []
    const text = readFileSync(join(source, file), 'utf8')
    return [...text.matchAll(/\bcommit\(\s*'([a-z_]+)'/g)].map(([, point]) => point!)
  })
  const hooks = ['hook_after_tool_call_success', 'hook_after_thread_created']
  return [...new Set([...named, ...hooks])].toSorted()
}
