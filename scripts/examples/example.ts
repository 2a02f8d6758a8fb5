import { existsSync, readdirSync, readFileSync } from 'node:fs'
import { basename, join } from 'node:path'
import { root, run } from '../workspace.ts'

/** A numbered program of `examples/` and what it promises to print. */
export interface Example {
  readonly name: string
  readonly file: string
  readonly expected: string | undefined
}

/** All examples in order of their numbers. */
export function findExamples(folder: string = join(root, 'examples')): Example[] {
  if (!existsSync(folder)) return []
  return readdirSync(folder)
    .filter((file) => /^\d{2,3}-[a-z0-9-]+\.ts$/.test(file))
    .toSorted((a, b) => Number.parseInt(a, 10) - Number.parseInt(b, 10))
    .map((file) => ({
      name: basename(file, '.ts'),
      file: join(folder, file),
      expected: expectedOutput(join(folder, file)),
    }))
}

/** The indented block after `Prints:` in the header comment, or a `.txt` file next to the program. */
function expectedOutput(file: string): string | undefined {
  const textFile = file.replace(/\.ts$/, '.txt')
  if (existsSync(textFile)) return readFileSync(textFile, 'utf8').trimEnd()
  const header = /^\/\*\*([\s\S]*?)\*\//.exec(readFileSync(file, 'utf8'))?.[1] ?? ''
  const block = /^ \* Prints:\n \*\n((?: \*(?: {5}.*)?\n?)+)/m.exec(header)?.[1]
  return block?.replaceAll(/^ \*(?: {5})?/gm, '').trimEnd()
}

/** Runs one example in a process of its own, and without any vendor's key: examples need none. */
export async function runExample({ file }: Example): Promise<{ code: number; output: string }> {
  const keys = Object.keys(process.env).filter((name) => name.endsWith('_API_KEY'))
  const { code, output } = await run('node', ['--conditions=@skein/source', file], {
    quiet: true,
    timeoutMs: 30_000,
    env: { ...Object.fromEntries(keys.map((name) => [name, undefined])), NO_COLOR: '1' },
  })
  return { code, output: output.trimEnd() }
}
