import { existsSync, readFileSync } from 'node:fs'
import { extname, join } from 'node:path'
import { importsFor } from './imports.ts'

/**
 * Code fences that name a file, as in
 *
 *     ```ts file=examples/90-read-a-stream.ts#program
 *
 * show that file, or the part of it between `// #region program` and `// #endregion program`. The file
 * is compiled and run by the tests; this makes sure that the page shows the same text. A region may hold others;
 * their marks are not shown.
 *
 * On pages that people paste from, a part of a program begins with those of its imports that it needs.
 */
const namedFence = /^```(\w+) file=(\S+)\n([\s\S]*?)^```$/gm

interface SnippetOptions {
  /** Whether a part of a program is shown with its imports. */
  readonly hasImports?: boolean
}

/** Fences of a page that differ from the file they name; empty when all agree. */
export function findStaleSnippets(
  page: string,
  workspace: string,
  options: SnippetOptions = {},
): string[] {
  return [...page.matchAll(namedFence)].flatMap(([, , reference = '', shown = '']) => {
    const source = readSnippet(reference, workspace, options)
    if (source === undefined) return [`${reference} does not exist.`]
    return source === shown ? [] : [`${reference} differs from what the page shows.`]
  })
}

/** The page with every named fence filled from its file. */
export function updateSnippets(
  page: string,
  workspace: string,
  options: SnippetOptions = {},
): string {
  return page.replaceAll(namedFence, (fence, language: string, reference: string) => {
    const source = readSnippet(reference, workspace, options)
    return source === undefined ? fence : `\`\`\`${language} file=${reference}\n${source}\`\`\``
  })
}

/** The whole program that a fence shows a part of, by the info line of the fence; undefined where there is none. */
export function programOf(
  info: string,
  workspace: string,
): { readonly path: string; readonly text: string } | undefined {
  const [, path] = /^(?:ts|tsx|js|jsx) file=([^#\s]+)#\S+$/.exec(info.trim()) ?? []
  if (path === undefined || !existsSync(join(workspace, path))) return undefined
  const text = readFileSync(join(workspace, path), 'utf8')
  return { path, text: text.replaceAll(/^ *\/\/ #(?:end)?region .*\n/gm, '') }
}

/** TypeScript fences that name no file, and so are checked by nothing. */
export function countUnnamedFences(page: string): number {
  return [...page.matchAll(/^```(?:ts|tsx|typescript|js)\s*$/gm)].length
}

/**
 * Fences of a page that can neither be pasted, since an import is missing, nor be opened as a whole program. `names` are
 * functions and classes that have to be imported where they are called.
 */
export function fencesWithoutImports(
  page: string,
  workspace: string,
  names: ReadonlySet<string> = new Set(),
): string[] {
  const fences = page.matchAll(/^```((?:ts|tsx|js|jsx)(?: .*)?)\n([\s\S]*?)^```$/gm)
  return [...fences]
    .filter(([, , code = '']) => !/^import /m.test(code) || callsWithoutImport(code, names))
    .filter(([, info = '']) => !/ file=[^#]+$/.test(info) && !programOf(info, workspace))
    .map(([fence]) => fence)
}

function callsWithoutImport(code: string, names: ReadonlySet<string>): boolean {
  const program = code.replaceAll(/\/\/.*|\/\*[\s\S]*?\*\//g, '')
  const declared = new Set(
    [
      ...program.matchAll(/^import ([\s\S]*?) from /gm),
      ...program.matchAll(/\b(?:const|let|function|class) ([\w${},:\s]+?)[=(]/g),
    ].flatMap(([, text = '']) => text.match(/[\w$]+/g) ?? []),
  )
  const calls = program.matchAll(/(?<![\w$.])([\w$]+)(?:<[^()]*>)?\(/g)
  return [...calls].some(([, name = '']) => names.has(name) && !declared.has(name))
}

function readSnippet(
  reference: string,
  workspace: string,
  { hasImports = false }: SnippetOptions,
): string | undefined {
  const [path = '', region] = reference.split('#')
  const file = join(workspace, path)
  if (!existsSync(file)) return undefined
  const text = readFileSync(file, 'utf8')
  if (region === undefined) return text
  const lines = text.split('\n')
  const start = lines.findIndex((line) => line.trim() === `// #region ${region}`)
  const end = lines.findIndex((line) => line.trim() === `// #endregion ${region}`)
  if (start < 0 || end < start) return undefined
  // A region inside a block is shown without the indentation of the block.
  const indent = lines[start]!.indexOf('/')
  const shown = lines
    .slice(start + 1, end)
    .filter((line) => !/^\s*\/\/ #(?:end)?region /.test(line))
    .map((line) => line.slice(indent))
  const part = `${shown.join('\n')}\n`
  const isProgram = /^\.[jt]sx?$/.test(extname(path))
  if (!hasImports || !isProgram || /^import /m.test(part)) return part
  const imports = importsFor(text, part)
  return imports === '' ? part : `${imports}\n${part}`
}
