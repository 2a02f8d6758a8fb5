import { cycleThrough, findKnots, graphOf, type Graph } from '../source/graph.ts'
import type { SourceFile } from '../source/measure.ts'

/** Files and folders that import each other's values. */
export function findValueCycles(files: readonly SourceFile[]): string[] {
  const problems = (graph: Graph, what: string): string[] =>
    findKnots(graph).map(
      ([first]) => `${what} import each other: ${cycleThrough(graph, first!)!.join(' → ')}.`,
    )
  const values = importsOf(files).filter(({ byType }) => !byType)
  return [
    ...problems(graphOf(values.map(({ from, to }) => [folderOf(from), folderOf(to)])), 'Folders'),
    ...problems(graphOf(values.map(({ from, to }) => [from, to])), 'Files'),
  ]
}

/** Sets of folders that all reach each other when imports of types count too, largest first. */
export function findFolderKnots(files: readonly SourceFile[]): string[][] {
  return findKnots(
    graphOf(importsOf(files).map(({ from, to }) => [folderOf(from), folderOf(to)] as const)),
  )
}

/** Sets of files that all reach each other when imports of types count too, largest first. */
export function findFileKnots(files: readonly SourceFile[]): string[][] {
  return findKnots(graphOf(importsOf(files).map(({ from, to }) => [from, to] as const)))
}

interface Import {
  readonly from: string
  readonly to: string
  readonly byType: boolean
}

/** The imports inside packages, without those of `index.ts`, which lists what an entry exports. */
function importsOf(files: readonly SourceFile[]): Import[] {
  return files
    .filter(({ path }) => !path.endsWith('/index.ts'))
    .flatMap(({ path, imports }) =>
      imports.map(({ path: to, byType }) => ({ from: path, to, byType })),
    )
}

function folderOf(path: string): string {
  return path.replace(/\/[^/]*$/, '')
}
