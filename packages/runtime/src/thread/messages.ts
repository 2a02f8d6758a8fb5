import {
  AssistantMessage,
  isMessage,
  type Message,
  messageFromJSON,
  messageToJSON,
  UserMessage,
} from '@skein/ai'
import type { JsonObject, MessageJSON } from '@skein/base'
import { RuntimeError } from '../contract/error.ts'
import type { Entry, KernelState } from '../state/kernel-state.ts'
import type {
  MessageQuery,
  NewMessage,
  StoredMessage,
  ThreadState,
} from '../contract/thread-state.ts'
import { type FacadeBuffer, jsonCopy } from './facade-buffer.ts'
import { type FacadeFiles } from './facade-files.ts'

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

/** The message methods of a thread's state, and `clear`, which is internal. */
export interface FacadeMessages extends MessageMembers {
  clear(): void
}

/**
 * Creates the methods of a thread's state for messages (`getMessages`, `queueMessage` …). Reads include
 * changes that are not committed yet.
 */
export function facadeMessages(
  buffer: FacadeBuffer,
  files: Pick<FacadeFiles, 'existing'>,
): FacadeMessages {
  const { environment, events } = buffer
  const pending = new PendingMessages(buffer.kernel)

  /** Checks a new message and returns it with the fields of its event. */
  function make({ content, attachments, metadata, isSilent }: NewMessage) {
    const message = toMessage(content, environment)
    if (pending.has(message.id)) throw refused(message.id, 'is in the thread already')
    const paths = files.existing(attachments)
    return {
      message,
      fields: {
        message: toJson(message, environment.limits.maxMessageBytes),
        isSilent: isSilent || undefined,
        attachments: paths.length > 0 ? paths : undefined,
        metadata:
          metadata &&
          (jsonCopy(metadata, {
            subject: 'The metadata of a message',
            code: 'INPUT_INVALID',
            maxBytes: MAX_METADATA_BYTES,
          }) as JsonObject), // `metadata` is an object, so its copy is one too
      },
    }
  }

  return {
    getMessages: (query) => selectMessages(pending.all(), query),
    getMessage: (id) => pending.get(id),
    injectMessage(given) {
      const { message, fields } = make(given)
      const { id } = message
      // The role decides the side of the conversation: `user` messages come from side B or the person in its place.
      const side = (given.role ?? 'user') === 'user' ? 'b' : 'a'
      const at = buffer.at()
      const turnId = environment.ids()
      events.push({ type: 'message_added', at, turnId, side, ...fields })
      const { isSilent = false, attachments = [], metadata } = fields
      pending.added.set(id, { id, message, side, isSilent, at, turnId, attachments, metadata })
      return id
    },
    queueMessage(given) {
      const { message, fields } = make(given)
      const queueId = message.id
      const role = given.role ?? 'user'
      events.push({ type: 'message_queued', at: buffer.at(), queueId, role, ...fields })
      pending.queued.add(queueId)
      return queueId
    },
    updateMessage(id, content) {
      const message = changed(pending.find(id).message, content)
      const json = toJson(message, environment.limits.maxMessageBytes)
      events.push({ type: 'message_updated', at: buffer.at(), messageId: id, message: json })
      pending.updated.set(id, message)
    },
    deleteMessage(id) {
      pending.find(id)
      const entry = buffer.kernel.entries[buffer.kernel.places.get(id) ?? -1]
      if (entry?.calls.some(({ outcome }) => outcome === undefined))
        throw refused(id, 'has calls that are not settled')
      events.push({ type: 'message_removed', at: buffer.at(), messageId: id })
      pending.removed.add(id)
    },
    clear: () => pending.clear(),
  }
}

/** The messages of a thread, with the uncommitted changes of one piece of user code applied. */
class PendingMessages {
  readonly added = new Map<string, StoredMessage>()
  readonly queued = new Set<string>()
  readonly updated = new Map<string, Message>()
  readonly removed = new Set<string>()
  readonly #kernel: KernelState

  constructor(kernel: KernelState) {
    this.#kernel = kernel
  }

  all(): StoredMessage[] {
    const all = [...storedMessages(this.#kernel), ...this.added.values()]
    return all.flatMap((stored) => this.#shown(stored) ?? [])
  }

  get(id: string): StoredMessage | undefined {
    const message = this.added.get(id) ?? storedMessage(this.#kernel, id)
    return message && this.#shown(message)
  }

  /** Returns a message that may be changed; throws for an id that does not exist or must not be changed. */
  find(id: string): StoredMessage {
    const before = this.get(id)
    if (!before)
      throw new RuntimeError(`There is no message ${id} in thread ${this.#kernel.threadId}.`, {
        code: 'MESSAGE_NOT_FOUND',
        hint: 'A queued message can be changed after it was taken into the history.',
      })
    if (before.message.type === 'tool_result') throw refused(id, 'holds the results of calls')
    return before
  }

  /** Whether the id is used already, also if its message is still queued. */
  has(id: string): boolean {
    const { places, queuedIds } = this.#kernel
    return places.has(id) || queuedIds.has(id) || this.added.has(id) || this.queued.has(id)
  }

  clear(): void {
    for (const memory of [this.added, this.queued, this.updated, this.removed]) memory.clear()
  }

  #shown(stored: StoredMessage): StoredMessage | undefined {
    const { id } = stored
    // When a message is removed, the results of its calls are removed too.
    if (this.removed.has(id) || this.removed.has(id.replace(/\.results$/, ''))) return undefined
    const message = this.updated.get(id)
    return message ? { ...stored, message } : stored
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
    throw badContent('has calls that would never run')
  }
  return content
}

/**
 * Returns the message with new content. Its id, time and calls stay, because results in the log refer
 * to the calls.
 */
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

function toJson(message: Message, maxBytes: number): MessageJSON {
  const json = jsonCopy(messageToJSON(message), {
    subject: `The message ${message.id}`,
    code: 'INPUT_INVALID',
    maxBytes,
  })
  messageFromJSON(json) // throws for a message that could not be read back from the log
  return json as unknown as MessageJSON // `json` is a copy of a `MessageJSON`
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

/**
 * Returns the messages of a thread in the order of its log, the results of calls directly after the
 * calls, without removed messages. With `last`, starts from the end and stops after so many messages
 * that people are shown: the old entries of a long thread are decoded only when they are used.
 */
export function storedMessages(
  { entries }: Pick<KernelState, 'entries'>,
  last: number = Infinity,
): StoredMessage[] {
  const pages: StoredMessage[][] = []
  for (let place = entries.length - 1, count = 0; place >= 0 && count < last; place--) {
    const entry = entries[place]!
    if (entry.isRemoved) continue
    const lines = linesOf(entry)
    pages.push(lines)
    if (!entry.isSilent) count += lines.length
  }
  return pages.reverse().flat()
}

/** Returns the message, or the message with the results of its calls, that has this id. */
export function storedMessage(
  { entries, places }: Pick<KernelState, 'entries' | 'places'>,
  id: string,
): StoredMessage | undefined {
  const entry = entries[places.get(id) ?? places.get(id.replace(/\.results$/, '')) ?? -1]
  if (!entry || entry.isRemoved) return undefined
  return linesOf(entry).find((line) => line.id === id)
}

/** Selects messages by order, offset and limit; silent messages, which people are not shown, only on request. */
export function selectMessages(
  messages: readonly StoredMessage[],
  { limit, offset = 0, order = 'asc', includeSilent = false }: MessageQuery = {},
): readonly StoredMessage[] {
  const visible = includeSilent ? [...messages] : messages.filter(({ isSilent }) => !isSilent)
  if (order === 'desc') visible.reverse()
  return visible.slice(offset, limit === undefined ? undefined : offset + limit)
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
    delivery: message === entry.message ? entry.delivery : undefined,
  })
  return entry.results ? [line(entry.message), line(entry.results)] : [line(entry.message)]
}
