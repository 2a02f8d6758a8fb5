import {
  AssistantMessage,
  ToolResultMessage,
  UserMessage,
  type Message,
  type MessageOptions,
  type UserContent,
} from '@skein/ai'
import { sha256Hex } from '@skein/base'
import type { ResolvedPrompt } from '../definitions/resolved.ts'
import type { Entry, KernelState } from '../state/kernel-state.ts'
import type { Side } from '../contract/thread-state.ts'
import { fileBlock, shownAs } from './file-blocks.ts'
import { remembered, sameAs } from './message-copies.ts'
import { openingOf } from './repaired-messages.ts'

/**
 * Returns the conversation as one side sees it: its own messages have the role `assistant`, all others
 * the role `user`. Calls and results of the other side are left out. Pure. The same entries give the same
 * message objects, because the encoders of vendor formats cache the encoded form of a message by its identity.
 */
export function viewOf(
  state: KernelState,
  side: Side,
  prompt: ResolvedPrompt,
  /** Entries from this index on are left out. */
  until: number = state.entries.length,
): Message[] {
  const {
    includeChat = true,
    includePastTools = true,
    recentImageThreshold = 10,
  } = prompt.definition
  const turnId = state.session?.turn?.id
  const compaction = state.compacted[side]
  let from = state.session?.firstEntry ?? 0
  if (includeChat) from = compaction ? (state.places.get(compaction.upTo) ?? -1) + 1 : 0
  const key = [prompt, from, state.shownSeq, includeChat && compaction]
  const start = until < state.entries.length ? new ViewStart(key, from) : startOf(state, side, key)
  if (start.messages.length === 0 && includeChat && compaction)
    start.messages.push(
      remembered(summaries, compaction, () => {
        const { summary, upTo } = compaction
        const options = { id: `${upTo}.summary`, timestamp: new Date(state.createdAt) }
        return summaryMessage(summary, options)
      }),
    )
  let messages = start.messages
  for (let place = start.until; place < until; place++) {
    const entry = state.entries[place]!
    // From the first entry whose messages can still change, messages are not kept for the next view.
    const isOpen =
      (entry.calls.length > 0 &&
        (!entry.results || (!includePastTools && entry.turnId === turnId))) ||
      // The next entry decides whether a note follows the refused answer.
      (entry.delivery === 'refused' && place === state.entries.length - 1)
    if (isOpen && messages === start.messages) messages = [...messages]
    // A note of the runtime is shown only to the side of the conversation that its field `for` names.
    const audience = entry.metadata?.['for']
    const isShown = !entry.isRemoved && (audience === undefined || audience === side)
    if (isShown && entry.dropped === 'noted') messages.push(droppedNote(entry.message))
    if (isShown && !entry.dropped)
      messages.push(...messagesOf(entry, side, includePastTools || entry.turnId === turnId))
    if (isShown && !entry.dropped && isLastRefused(state, place)) messages.push(refusedNote(entry))
    if (messages === start.messages) start.until = place + 1
  }
  if (messages === start.messages) messages = [...messages]
  start.showOldImagesAsText(messages, recentImageThreshold)
  const first = messages[0]
  // Vendors require a user's message first. But the first message may come from this side of the conversation
  // itself, because this side spoke first or because the message before it was removed.
  if (first?.type === 'assistant') messages.unshift(openingOf(first))
  return messages
}

/** The messages at the start of a view that stay the same while the thread grows; kept for the next view. */
class ViewStart {
  /** The values, besides the entries, on which the messages depend. If one changes, the messages are built anew. */
  readonly key: readonly unknown[]
  readonly messages: Message[] = []
  /** The index of the first entry whose messages are not in `messages`. */
  until: number
  /** In messages before this index, images have been replaced by text. */
  #imagesUntil = 0

  constructor(key: readonly unknown[], from: number) {
    this.key = key
    this.until = from
  }

  /** Replaces images in user messages by a line of text, except in the last `threshold` messages of the view. */
  showOldImagesAsText(view: Message[], threshold: number): void {
    for (let place = this.#imagesUntil; place < view.length - threshold; place++) {
      const message = view[place]!
      const visible = message.type === 'user' ? withoutOldImages(message) : message
      view[place] = visible
      if (place >= this.messages.length) continue
      this.messages[place] = visible
      this.#imagesUntil = place + 1
    }
  }
}

const starts = new WeakMap<KernelState, { a?: ViewStart; b?: ViewStart }>()

/** Returns the kept start of the last view of this side of the conversation, or an empty one if it is not valid. */
function startOf(state: KernelState, side: Side, key: readonly unknown[]): ViewStart {
  const startsBySide = starts.get(state) ?? {}
  starts.set(state, startsBySide)
  const last = startsBySide[side]
  if (last && last.key.every((part, place) => part === key[place])) return last
  return (startsBySide[side] = new ViewStart(key, key[1] as number)) // the index of the first entry
}

/** Returns the note that replaces messages the user took back; the calls that had started follow it. */
function droppedNote(dropped: Message): Message {
  const { id, timestamp } = dropped
  const text =
    '[What was asked here was taken back. Calls that had started by then are shown with their outcomes.]'
  return remembered(notes, dropped, () => new UserMessage(text, { id: `${id}.dropped`, timestamp }))
}

/**
 * Whether the entry is a refused answer, and no later message already says so: another refused answer with a note of its
 * own, or the note with which the gate asked for a correction.
 */
function isLastRefused({ entries }: KernelState, place: number): boolean {
  const after = entries[place + 1]
  return (
    entries[place]!.delivery === 'refused' &&
    after?.delivery !== 'refused' &&
    after?.metadata?.['kind'] !== 'gate'
  )
}

/** Returns the note that follows an answer that the gate refused, so that no model takes it for a good answer. */
function refusedNote({ message, refusal }: Entry): Message {
  const { id, timestamp } = message
  const text = `[This answer was not delivered, because the checks refused it${refusal ? `: ${refusal}` : '.'} Do not rely on it.]`
  return remembered(
    refusals,
    message,
    () => new UserMessage(text, { id: `${id}.refused`, timestamp }),
  )
}

/** Returns the message that replaces the summarised messages. The same summary gives the same id. */
export function summaryMessage(summary: string, options: MessageOptions = {}): UserMessage {
  return new UserMessage(`[Summary of the conversation so far]\n${summary}`, {
    id: `summary-${sha256Hex(summary).slice(0, 16)}`,
    timestamp: new Date(0),
    ...options,
  })
}

// One cache for each way in which a message is changed for a view, so that the same message gives the same object.
const summaries = new WeakMap<object, Message>()
const notes = new WeakMap<Message, Message>()
const refusals = new WeakMap<Message, Message>()
const withoutCalls = new WeakMap<Message, Message>()
const asAssistant = new WeakMap<Message, Message>()
const asUser = new WeakMap<Message, Message>()
const withFiles = new WeakMap<Message, Message>()
const withoutImages = new WeakMap<Message, Message>()

/** Returns the messages that a side of the conversation sees of one entry. */
function messagesOf(entry: Entry, side: Side, showsTools: boolean): Message[] {
  const { message, results } = entry
  // A message that is shown in another role loses its metadata: the vendor's data in it belongs to the
  // original role.
  const { id, timestamp } = message
  if (message.type === 'user') {
    if (entry.side === 'a' && side === 'a') {
      // The parent thread sent this text to side B in the role of side A, so side A sees it as its own words.
      if (message.text === '') return []
      const make = () => new AssistantMessage(message.text, undefined, { id, timestamp })
      return [remembered(asAssistant, message, make)]
    }
    const files = attachedFiles(entry)
    if (files.length === 0) return [message]
    const make = () => new UserMessage([...message.content, ...files], sameAs(message))
    return [remembered(withFiles, message, make)]
  }
  if (message.type !== 'assistant') return []
  if (entry.side !== side) {
    if (message.text === '') return []
    return [remembered(asUser, message, () => new UserMessage(message.text, { id, timestamp }))]
  }
  if (showsTools && !entry.calls.some(({ isHidden }) => isHidden))
    return results ? [message, results] : [message]
  return visiblePart(entry, message, showsTools)
}

/**
 * Returns one text block for each file that is attached to a message. The text of a child's report, whose wording
 * Standard Agents §7.10 prescribes, already lists its files, so there only files that models can see get a block.
 */
function attachedFiles({ attachments, files, subagentId }: Entry): readonly UserContent[] {
  const isShown = (path: string): boolean =>
    files.some((file) => file.path === path && shownAs(file.mediaType) !== undefined)
  const paths = subagentId === undefined ? attachments : attachments.filter(isShown)
  return paths.map((path, place) => {
    const file = files.find((found) => found.path === path)
    const before = place > 0 ? '\n' : 'Attached files:\n'
    const isListed = subagentId !== undefined
    return file ? fileBlock(file, { before, isListed }) : { type: 'text', text: `${before}${path}` }
  })
}

/** Returns how many messages at the start of two lists are the same objects. */
export function sameStart(one: readonly Message[], other: readonly Message[]): number {
  const length = Math.min(one.length, other.length)
  let place = 0
  while (place < length && one[place] === other[place]) place++
  return place
}

/**
 * Returns a message of this side of the conversation without its hidden calls, followed by the results of its visible
 * calls. If `showsTools` is false, all calls are left out.
 */
function visiblePart(entry: Entry, message: AssistantMessage, showsTools: boolean): Message[] {
  const visible = showsTools ? entry.calls.filter(({ isHidden }) => !isHidden) : []
  if (visible.length === 0) {
    if (message.text === '') return []
    const make = () => new AssistantMessage(message.content, undefined, sameAs(message))
    return [remembered(withoutCalls, message, make)]
  }
  const ids = new Set(visible.map(({ call }) => call.toolCallId))
  const calls = (message.toolCalls ?? []).filter(({ toolCallId }) => ids.has(toolCallId))
  const visibleAnswer = new AssistantMessage(message.content, calls, sameAs(message))
  if (entry.results?.type !== 'tool_result') return [visibleAnswer]
  const results = entry.results.results.filter(({ toolCallId }) => ids.has(toolCallId))
  return [visibleAnswer, new ToolResultMessage(results, sameAs(entry.results))]
}

function withoutOldImages(message: UserMessage): Message {
  if (!message.content.some(({ type }) => type === 'image')) return message
  return remembered(withoutImages, message, () => {
    const content = message.content.map((block) =>
      block.type === 'image'
        ? { type: 'text' as const, text: `[An image (${block.mimeType}) was here.]` }
        : block,
    )
    return new UserMessage(content, sameAs(message))
  })
}
