import { existsSync, readFileSync } from 'node:fs'
import { join } from 'node:path'

/**
 * Code fences that name a file, as in
 *
 *     ```ts file=examples/90-read-a-stream.ts#program
 *
 * show that file, or the part of it between `// #region program` and `// #endregion program`. The file
 * is compiled and run by the tests; this makes sure that the page shows the same text. A region may hold others;
 * their marks are not shown.
 */
const namedFence = /^```(\w+) file=(\S+)\n([\s\S]*?)^```$/gm

/** Fences of a page that differ from the file they name; empty when all agree. */
export function findStaleSnippets(page: string, workspace: string): string[] {
  return [...page.matchAll(namedFence)].flatMap(([, , reference = '', shown = '']) => {
    const source = readSnippet(reference, workspace)
    if (source === undefined) return [`${reference} does not exist.`]
    return source === shown ? [] : [`${reference} differs from what the page shows.`]
  })
}

/** The page with every named fence filled from its file. */
export function updateSnippets(page: string, workspace: string): string {
  return page.replaceAll(namedFence, (fence, language: string, reference: string) => {
    const source = readSnippet(reference, workspace)
    return source === undefined ? fence : `\`\`\`${language} file=${reference}\n${source}\`\`\``
  })
}

/** TypeScript fences that name no file, and so are checked by nobody. */
export function countUnnamedFences(page: string): number {
  return [...page.matchAll(/^```(?:ts|tsx|typescript|js)\s*$/gm)].length
}

function readSnippet(reference: string, workspace: string): string | undefined {
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
  return `${shown.join('\n')}\n`
}
