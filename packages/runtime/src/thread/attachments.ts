import type { ThreadPlace } from '../contract/context.ts'
import type { MessageQueued, RuntimeEvent } from '../contract/event.ts'
import type { ThreadChange } from '../store/store.ts'
import type { FileStat } from '../contract/thread-state.ts'
import { attachmentPath, normalisePath } from './paths.ts'

/** Copies of files for another thread: they share the content and have paths of their own there. */
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

/**
 * The files of this thread with these paths. `pending` holds events that the same call has written
 * and not committed yet; their files count as well.
 */
export function findFiles(
  { state }: Pick<ThreadPlace, 'state'>,
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
    if (!file) throw new MissingFileError(given)
    return file
  })
}

/**
 * Copies files of this thread by their content hash. `salt` names the delivery: the same salt gives
 * the same paths, so a delivery that is made again after a crash copies nothing twice.
 */
export function copyFiles(
  context: Pick<ThreadPlace, 'at'>,
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

/** A text message to another thread, with the files that were copied for it. */
export function queuedText(
  context: ThreadPlace,
  { text, files }: { readonly text: string; readonly files: CopiedFiles },
  rest: Pick<MessageQueued, 'role'> & Partial<MessageQueued>,
): MessageQueued {
  const at = context.at()
  const id = context.environment.ids()
  return {
    type: 'message_queued',
    at,
    queueId: id,
    message: { id, type: 'user', timestamp: at, content: [{ type: 'text', text }] },
    attachments: files.paths.length > 0 ? files.paths : undefined,
    ...rest,
  }
}

/**
 * A text with its files as a silent message to the parent, marked with the child that sent it. The
 * paths are the parent's own, one per line below the text.
 */
export function silentMessage(
  context: ThreadPlace,
  text: string,
  files: CopiedFiles,
): RuntimeEvent {
  const subagentId = context.head.id
  return queuedText(context, { text, files }, { role: 'user', isSilent: true, subagentId })
}

/** A text followed by one path per line. */
export function withPaths(text: string, { paths }: CopiedFiles): string {
  return paths.length === 0 ? text : [text, '', ...paths].join('\n')
}

/**
 * `state.notifyParent`: queues a silent text at the parent. `pending` holds the events that the same
 * call has written and not committed yet. Nothing is sent to a parent that is over.
 */
export async function noticeToParent(
  context: ThreadPlace,
  { text, attachments }: { readonly text: string; readonly attachments: readonly string[] },
  pending: readonly RuntimeEvent[],
): Promise<readonly ThreadChange[]> {
  const parentId = await liveParent(context)
  if (parentId === undefined) return []
  const { ids, clock } = context.environment
  const files = copyFiles(context, findFiles(context, attachments, pending), ids())
  const append = [...files.events, silentMessage(context, withPaths(text, files), files)]
  return [{ id: parentId, append, wake: { by: clock.now() } }]
}

/** The id of the parent, unless there is none or it was terminated or erased. */
export async function liveParent({ state, environment }: ThreadPlace): Promise<string | undefined> {
  if (!state.parent) return undefined
  const head = await environment.store.head(state.parent.threadId)
  const isOver = !head || head.lifecycle === 'terminated' || head.lifecycle === 'erased'
  return isOver ? undefined : head.id
}
