import {
  AssistantMessage,
  isMessage,
  type Message,
  messageFromJSON,
  messageToJSON,
  UserMessage,
} from '@skein/ai'
import type { JsonObject } from '@skein/base'
import type { UppMessage } from '@skein/threads/upp'
import { RuntimeError } from '../error.ts'
import type { Entry, KernelState } from '../state.ts'
import type { MessageQuery, NewMessage, StoredMessage, ThreadState } from '../thread-state.ts'
import type { FacadeFiles } from './files.ts'
import { type FacadeBuffer, jsonCopy } from './buffer.ts'

const MAX_METADATA_BYTES = 64 * 1024

type MessageMembers = Pick<
  ThreadState,
  | 'getMessages'
  | 'getMessage'
  | 'injectMessage'
  | 'queueMessage'
  | 'updateMessage'
  | 'deleteMessage'
>

export interface FacadeMessages extends MessageMembers {
  clear(): void
}

/** Messages of a thread with what was added, changed or removed but not committed. */
export function facadeMessages(
  buffer: FacadeBuffer,
  files: Pick<FacadeFiles, 'existing'>,
): FacadeMessages {
  const { kernel, environment, events } = buffer
  const added = new Map<string, StoredMessage>()
  const queued = new Set<string>()
  const updated = new Map<string, Message>()
  const removed = new Set<string>()

  const withChange = (stored: StoredMessage): StoredMessage => {
    const message = updated.get(stored.id)
    return message ? { ...stored, message } : stored
  }

  /** The results of a removed message go with it. */
  const isRemoved = (id: string) => removed.has(id) || removed.has(id.replace(/\.results$/, ''))

  function get(id: string): StoredMessage | undefined {
    if (isRemoved(id)) return undefined
    const stored = added.get(id) ?? storedMessage(kernel, id)
    return stored && withChange(stored)
  }

  function find(id: string): StoredMessage {
    const stored = get(id)
    if (!stored) throw notFound(id, kernel.threadId)
    if (stored.message.type === 'tool_result') throw refused(id, 'holds the results of calls')
    return stored
  }

  /** A new message, checked and ready for an event. */
  function make({ content, attachments, metadata, isSilent }: NewMessage) {
    const message = toMessage(content, environment)
    const { id } = message
    if (kernel.places.has(id) || kernel.queuedIds.has(id) || added.has(id) || queued.has(id)) {
      throw refused(id, 'is in the thread already')
    }
    const paths = files.existing(attachments)
    return {
      message,
      fields: {
        message: toJson(message, environment.limits.maxMessageBytes),
        isSilent: isSilent || undefined,
        ...(paths.length > 0 && { attachments: paths }),
        ...(metadata && { metadata: metadataOf(metadata) }),
      },
    }
  }

  return {
    getMessages(query) {
      const all = [...storedMessages(kernel), ...added.values()]
      const live = all.filter(({ id }) => !isRemoved(id)).map(withChange)
      return selectMessages(live, query)
    },
    getMessage: get,
    injectMessage(given) {
      const { message, fields } = make(given)
      // The role says who speaks: a user is side B, or the person in its place.
      const side = (given.role ?? 'user') === 'user' ? 'b' : 'a'
      const event = {
        type: 'message_added' as const,
        at: buffer.at(),
        turnId: environment.ids(),
        side: side as 'a' | 'b',
        ...fields,
      }
      events.push(event)
      const { at, turnId, isSilent = false, attachments = [], metadata } = event
      const stored = {
        id: message.id,
        message,
        side: event.side,
        isSilent,
        at,
        turnId,
        attachments,
      }
      added.set(message.id, metadata ? { ...stored, metadata } : stored)
      return message.id
    },
    queueMessage(given) {
      const { message, fields } = make(given)
      events.push({
        type: 'message_queued',
        at: buffer.at(),
        queueId: message.id,
        role: given.role ?? 'user',
        ...fields,
      })
      queued.add(message.id)
      return message.id
    },
    updateMessage(id, content) {
      const message = changed(find(id).message, content)
      events.push({
        type: 'message_updated',
        at: buffer.at(),
        messageId: id,
        message: toJson(message, environment.limits.maxMessageBytes),
      })
      updated.set(id, message)
    },
    deleteMessage(id) {
      find(id)
      if (hasOpenCalls(kernel.entries[kernel.places.get(id) ?? -1])) {
        throw refused(id, 'has calls that are not settled')
      }
      events.push({ type: 'message_removed', at: buffer.at(), messageId: id })
      removed.add(id)
    },
    clear() {
      for (const memory of [added, queued, updated, removed]) memory.clear()
    },
  }
}

function toMessage(
  content: string | Message,
  { ids, clock }: Pick<FacadeBuffer['environment'], 'ids' | 'clock'>,
): Message {
  if (typeof content === 'string') return new UserMessage(content, { ids, clock })
  if (!isMessage(content)) throw badContent('is neither a text nor a message')
  if (content.type === 'tool_result') throw badContent('holds results of calls')
  if (content.type === 'assistant' && content.toolCalls?.length) {
    throw badContent('has calls that nobody would run')
  }
  return content
}

/** The message with other content. Its id, time and calls stay: results in the log belong to them. */
function changed(before: Message, content: string | Message): Message {
  if (typeof content !== 'string' && (!isMessage(content) || content.type !== before.type)) {
    throw refused(before.id, `is of type ${before.type}, and its new content is not`)
  }
  const { id, timestamp, metadata } = before
  const same = { id, timestamp, metadata }
  if (before.type === 'assistant') {
    const blocks = typeof content === 'string' ? content : (content as AssistantMessage).content
    return new AssistantMessage(blocks, before.toolCalls, same)
  }
  return new UserMessage(
    typeof content === 'string' ? content : (content as UserMessage).content,
    same,
  )
}

function hasOpenCalls(entry: Entry | undefined): boolean {
  return entry?.calls.some(({ outcome }) => outcome === undefined) ?? false
}

function toJson(message: Message, maxBytes: number): UppMessage {
  const json = jsonCopy(messageToJSON(message), {
    subject: `The message ${message.id}`,
    code: 'INPUT_INVALID',
    maxBytes,
  })
  messageFromJSON(json) // what the log cannot be read from must not get in
  return json as unknown as UppMessage // MessageJSON is the JSON of a UPP message
}

function metadataOf(metadata: JsonObject): JsonObject {
  return jsonCopy(metadata, {
    subject: 'The metadata of a message',
    code: 'INPUT_INVALID',
    maxBytes: MAX_METADATA_BYTES,
  }) as JsonObject // a copy of an object is one
}

function notFound(id: string, threadId: string): RuntimeError {
  return new RuntimeError(`There is no message ${id} in thread ${threadId}.`, {
    code: 'MESSAGE_NOT_FOUND',
    hint: 'A queued message can be changed once it was taken.',
  })
}

function refused(id: string, problem: string): RuntimeError {
  return new RuntimeError(`The message ${id} ${problem}.`, { code: 'INPUT_INVALID' })
}

function badContent(problem: string): RuntimeError {
  return new RuntimeError(`The content of the new message ${problem}.`, {
    code: 'INPUT_INVALID',
    hint: 'Give a text, a UserMessage, or an AssistantMessage without calls.',
  })
}

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
    subagentId: entry.subagentId,
    metadata: entry.metadata,
  })
  return entry.results ? [line(entry.message), line(entry.results)] : [line(entry.message)]
}
