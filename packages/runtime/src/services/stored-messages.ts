import type { Message } from '@skein/ai'
import type { Entry, KernelState } from '../kernel/state.ts'
import type { MessageQuery, StoredMessage } from '../thread-state.ts'

/** The messages of a thread in the order of its log, each call's results after it; removed ones left out. */
export function storedMessages({ entries }: Pick<KernelState, 'entries'>): StoredMessage[] {
  return entries.flatMap((entry) => (entry.isRemoved ? [] : linesOf(entry)))
}

/** One message or one message of results, by its id. */
export function storedMessage(
  { entries, places }: Pick<KernelState, 'entries' | 'places'>,
  id: string,
): StoredMessage | undefined {
  const entry = entries[places.get(id) ?? places.get(id.replace(/\.results$/, '')) ?? -1]
  if (!entry || entry.isRemoved) return undefined
  return linesOf(entry).find((line) => line.id === id)
}

/** Silent messages only when they are asked for; then order, offset and limit. */
export function selectMessages(
  messages: readonly StoredMessage[],
  { limit, offset = 0, order = 'asc', includeSilent = false }: MessageQuery = {},
): readonly StoredMessage[] {
  const shown = includeSilent ? [...messages] : messages.filter(({ isSilent }) => !isSilent)
  if (order === 'desc') shown.reverse()
  return shown.slice(offset, limit === undefined ? undefined : offset + limit)
}

function linesOf(entry: Entry): StoredMessage[] {
  const line = (message: Message): StoredMessage => ({
    id: message.id,
    message,
    side: entry.side,
    isSilent: entry.isSilent,
    at: entry.at,
    turnId: entry.turnId,
    attachments: message === entry.message ? entry.attachments : [],
    ...(entry.subagentId !== undefined && { subagentId: entry.subagentId }),
    ...(entry.metadata && { metadata: entry.metadata }),
  })
  return entry.results ? [line(entry.message), line(entry.results)] : [line(entry.message)]
}
