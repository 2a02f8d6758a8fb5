import type { KernelState } from '../state/kernel-state.ts'
import type { RuntimeEvent } from '../contract/event.ts'
import type { FileStat } from '../contract/thread-state.ts'
import { normalisePath, attachmentPath } from './paths.ts'

/**
 * Copies of files for another thread. The copies refer to the same stored content and have new paths in that
 * thread.
 */
export interface CopiedFiles {
  readonly paths: readonly string[]
  readonly events: readonly RuntimeEvent[]
}

/**
 * Returns the files of this thread with these paths. `pending` contains events of the same call that
 * are not committed yet; files that these events write are found too.
 */
export function findFiles(
  { state }: { readonly state: KernelState },
  paths: readonly string[],
  pending: readonly RuntimeEvent[] = [],
): readonly FileStat[] {
  return paths.map((given) => {
    const path = normalisePath(given)
    for (const event of pending.toReversed()) {
      if (event.type !== 'file_written' || event.path !== path) continue
      const { mediaType, sizeBytes, hash = '', at: writtenAt } = event
      return { path, mediaType, sizeBytes, hash, writtenAt }
    }
    const file = state.files.get(path)
    if (!file) throw new Error(`There is no file ${given} in this thread; nothing was sent.`)
    return file
  })
}

/**
 * Returns copies of files for another thread; they refer to the same content by its hash. `salt` names
 * the message or report with which they are sent: the same salt gives the same paths, so if sending is
 * repeated after a crash, nothing is copied twice.
 */
export function copyFiles(
  context: { at(): string },
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
