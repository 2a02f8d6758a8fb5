import type { RuntimeEvent } from '../event.ts'
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

/** Copies files of this thread by their content address. `salt` makes the paths of one delivery its own. */
export function copyFiles(
  context: Pick<DrainContext, 'state' | 'at'>,
  sources: readonly string[],
  salt: string,
): CopiedFiles {
  const paths: string[] = []
  const events = sources.map((source, place): RuntimeEvent => {
    const file = context.state.files.get(normalisePath(source))
    if (!file) throw new MissingFileError(source)
    const path = attachmentPath(file.path, `${salt}/${place}/${file.path}/${file.hash}`)
    paths.push(path)
    const { mediaType, sizeBytes, hash } = file
    return { type: 'file_written', at: context.at(), path, mediaType, sizeBytes, hash }
  })
  return { paths, events }
}
