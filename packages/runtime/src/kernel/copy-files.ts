import type { RuntimeEvent } from '../event.ts'
import type { FileStat } from '../thread-state.ts'
import { attachmentPath, normalisePath } from '../services/paths.ts'
import type { DrainContext } from './drain-context.ts'

/** Files on their way to another thread: the content is shared, the path is the destination's own. */
export interface CopiedFiles {
  readonly paths: readonly string[]
  readonly events: readonly RuntimeEvent[]
}

/** A path that names no file of this thread. */
export class MissingFileError extends Error {
  constructor(path: string) {
    super(`There is no file ${path} in this thread; nothing was sent.`)
  }
}

/** The files of this thread by these paths, as they are now or, with `pending`, will be in a moment. */
export function findFiles(
  { state }: Pick<DrainContext, 'state'>,
  paths: readonly string[],
  pending: readonly RuntimeEvent[] = [],
): readonly FileStat[] {
  return paths.map((path) => {
    const normal = normalisePath(path)
    const file = pendingFile(pending, normal) ?? state.files.get(normal)
    if (!file) throw new MissingFileError(path)
    return file
  })
}

function pendingFile(pending: readonly RuntimeEvent[], path: string): FileStat | undefined {
  for (const event of pending.toReversed()) {
    if (event.type !== 'file_written' || event.path !== path) continue
    const { mediaType, sizeBytes, hash = '', at: writtenAt } = event
    return { path, mediaType, sizeBytes, hash, writtenAt }
  }
  return undefined
}

/** Copies files of this thread by their content address. `salt` makes the paths of one delivery its own. */
export function copyFiles(
  context: Pick<DrainContext, 'at'>,
  sources: readonly FileStat[],
  salt: string,
): CopiedFiles {
  const paths: string[] = []
  const events = sources.map((file, place): RuntimeEvent => {
    const path = attachmentPath(file.path, `${salt}/${place}/${file.path}/${file.hash}`)
    paths.push(path)
    const { mediaType, sizeBytes, hash } = file
    return { type: 'file_written', at: context.at(), path, mediaType, sizeBytes, hash }
  })
  return { paths, events }
}
