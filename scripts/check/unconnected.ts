import { readFileSync } from 'node:fs'
import { join } from 'node:path'
import { unconnectedGroups, type DeclarationGroup } from '../source/groups.ts'
import type { SourceFile } from '../source/measure.ts'

/** A file that holds several ideas: groups of declarations that never mention each other. */
export interface UnconnectedFile {
  readonly path: string
  readonly groups: readonly DeclarationGroup[]
}

/** Files whose top-level declarations form two or more unconnected groups of at least 30 lines. */
export function findUnconnectedFiles(
  root: string,
  files: readonly SourceFile[],
): UnconnectedFile[] {
  return files
    .map(({ path }) => ({
      path,
      groups: unconnectedGroups(path, readFileSync(join(root, path), 'utf8')),
    }))
    .filter(({ groups }) => groups.length > 0)
}
