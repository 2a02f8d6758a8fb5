import { encodeBase64 } from '@skein/base'
import { EVENT_VERSION } from '../event.ts'
import { headOf, type ApiContext } from './api-context.ts'
import { blobsOf, withoutSecrets, type BlobLine, type ThreadLinesHeader } from './thread-lines.ts'

/** The log of a thread as JSON lines: a header, the events, then the contents they name. */
export async function exportThread(context: ApiContext, threadId: string): Promise<string> {
  const head = await headOf(context, threadId)
  const events = await context.store.events(threadId)
  const blobs: BlobLine[] = []
  for (const blob of blobsOf(events.map(({ event }) => event))) {
    const bytes = await context.store.blob(blob)
    if (bytes) blobs.push({ blob, base64: encodeBase64(bytes) })
  }
  const header: ThreadLinesHeader = {
    skein: 'thread',
    version: EVENT_VERSION,
    threadId,
    agent: head.agent,
    title: head.title,
    tags: head.tags,
    exportedAt: context.at(),
    events: events.length,
    blobs: blobs.length,
  }
  const stored = events.map(({ seq, event }) => ({ seq, event: withoutSecrets(event) }))
  return [header, ...stored, ...blobs].map((line) => `${JSON.stringify(line)}\n`).join('')
}
