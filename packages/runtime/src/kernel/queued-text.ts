import type { MessageQueued } from '../event.ts'
import type { CopiedFiles } from './copy-files.ts'
import type { ThreadPlace } from './drain-context.ts'

/** Text on its way to another thread, with the files that were copied for it. */
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
    ...(files.paths.length > 0 && { attachments: files.paths }),
    ...rest,
  }
}
