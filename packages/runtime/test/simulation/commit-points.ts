import { globSync, readFileSync } from 'node:fs'
import { join } from 'node:path'

const kernel = join(import.meta.dirname, '../../src/kernel')

/** Every point at which the kernel commits, read from its source: a new one must be crashed at too. */
export function kernelPoints(): string[] {
  const named = globSync('*.ts', { cwd: kernel }).flatMap((file) => {
    if (file.includes('.test')) return []
    const text = readFileSync(join(kernel, file), 'utf8')
    return [...text.matchAll(/\bcommit\(\s*'([a-z_]+)'/g)].map(([, point]) => point!)
  })
  const hooks = ['hook_after_tool_call_success', 'hook_after_thread_created']
  return [...new Set([...named, ...hooks])].toSorted()
}
