import {
  AssistantMessage,
  ToolResultMessage,
  UserMessage,
  type Message,
  type MessageOptions,
} from '@skein/ai'
import type { ResolvedPrompt } from '../definitions/resolved.ts'
import { sha256Hex } from '@skein/base'
import type { Side } from '../thread-state.ts'
import type { Entry, KernelState } from '../state.ts'

/**
 * The conversation as one side sees it: its own lines are the assistant's, everybody else's the
 * user's. The other side's calls and results are not shown. Pure; the same entries give the same
 * message objects, so that wire forms cached by identity stay good.
 */
export function viewOf(state: KernelState, side: Side, prompt: ResolvedPrompt): Message[] {
  const { includeChat = true, includePastTools = true } = prompt.definition
  const from = includeChat ? firstEntry(state, side) : (state.session?.firstEntry ?? 0)
  const turnId = state.session?.turn?.id
  const summary = includeChat ? summaryOf(state, side) : []
  const messages = [...summary]
  for (let place = from; place < state.entries.length; place++) {
    const entry = state.entries[place]!
    if (entry.isRemoved || isForOther(entry, side)) continue
    const showsTools = includePastTools || entry.turnId === turnId
    if (entry.message.type === 'user') messages.push(...outsideLines(entry, side))
    else if (entry.side === side) messages.push(...ownLines(entry, showsTools))
    else messages.push(...otherLines(entry))
  }
  const whole = withOpening(messages)
  return withOldImagesAsText(whole, prompt.definition.recentImageThreshold ?? 10)
}

const openings = new WeakMap<Message, Message>()

/** A side may have spoken first, or what it answered was removed; vendors want a user's line first. */
function withOpening(messages: Message[]): Message[] {
  const first = messages[0]
  if (first?.type !== 'assistant') return messages
  const { id, timestamp } = first
  const opening = remembered(
    openings,
    first,
    () => new UserMessage('Begin.', { id: `${id}.opening`, timestamp }),
  )
  return [opening, ...messages]
}

function firstEntry({ compacted, places }: KernelState, side: Side): number {
  const upTo = compacted[side]?.upTo
  return upTo === undefined ? 0 : (places.get(upTo) ?? -1) + 1
}

const summaries = new WeakMap<object, Message>()

function summaryOf({ compacted, createdAt }: KernelState, side: Side): Message[] {
  const compaction = compacted[side]
  if (!compaction) return []
  const { summary, upTo } = compaction
  return [
    remembered(summaries, compaction, () =>
      summaryMessage(summary, { id: `${upTo}.summary`, timestamp: new Date(createdAt) }),
    ),
  ]
}

/** Notes of the runtime are for one side. */
function isForOther({ metadata }: Entry, side: Side): boolean {
  const meant = metadata?.['for']
  return meant !== undefined && meant !== side
}

/** What came from outside is the user's, except to a side in whose name it was said. */
function outsideLines(entry: Entry, side: Side): Message[] {
  return entry.side === 'a' && side === 'a' ? asAssistant(entry) : [withAttachments(entry)]
}

function ownLines(entry: Entry, showsTools: boolean): Message[] {
  const { message, results } = entry
  const hides = entry.calls.some(({ isHidden }) => isHidden)
  if (showsTools && !hides) return results ? [message, results] : [message]
  return stripped(entry, showsTools)
}

const strippedLines = new WeakMap<Message, Message>()

/** Without its calls, or without the hidden ones. */
function stripped(entry: Entry, showsTools: boolean): Message[] {
  const message = entry.message as AssistantMessage // the caller has looked
  const visible = showsTools ? entry.calls.filter(({ isHidden }) => !isHidden) : []
  if (visible.length === 0) {
    if (message.text === '') return []
    return [
      remembered(
        strippedLines,
        message,
        () => new AssistantMessage(message.content, undefined, sameAs(message)),
      ),
    ]
  }
  const ids = new Set(visible.map(({ call }) => call.toolCallId))
  const calls = (message.toolCalls ?? []).filter(({ toolCallId }) => ids.has(toolCallId))
  const shown = new AssistantMessage(message.content, calls, sameAs(message))
  if (entry.results?.type !== 'tool_result') return [shown]
  const results = entry.results.results.filter(({ toolCallId }) => ids.has(toolCallId))
  return [shown, new ToolResultMessage(results, sameAs(entry.results))]
}

const asAssistants = new WeakMap<Message, Message>()

/** Speech of this side that came from outside, e.g. a parent that speaks to the other side. */
function asAssistant({ message }: Entry): Message[] {
  if (message.type !== 'user' || message.text === '') return []
  return [
    remembered(
      asAssistants,
      message,
      () => new AssistantMessage(message.text, undefined, retold(message)),
    ),
  ]
}

const asUsers = new WeakMap<Message, Message>()

function otherLines({ message }: Entry): Message[] {
  if (message.type !== 'assistant' || message.text === '') return []
  return [remembered(asUsers, message, () => new UserMessage(message.text, retold(message)))]
}

const attached = new WeakMap<Message, Message>()

/** Names the files that came with a message; reports of children name theirs already. */
function withAttachments({ message, attachments, subagentId }: Entry): Message {
  if (attachments.length === 0 || subagentId !== undefined || message.type !== 'user')
    return message
  return remembered(attached, message, () => {
    const text = `Attached files:\n${attachments.join('\n')}`
    return new UserMessage([...message.content, { type: 'text', text }], sameAs(message))
  })
}

const withoutImages = new WeakMap<Message, Message>()

function withOldImagesAsText(messages: Message[], threshold: number): Message[] {
  for (let place = 0; place < messages.length - threshold; place++) {
    const message = messages[place]!
    if (message.type === 'user' && message.images.length > 0)
      messages[place] = remembered(withoutImages, message, () => imagesAsText(message))
  }
  return messages
}

function imagesAsText(message: UserMessage): Message {
  const content = message.content.map((block) =>
    block.type === 'image'
      ? { type: 'text' as const, text: `[An image (${block.mimeType}) was here.]` }
      : block,
  )
  return new UserMessage(content, sameAs(message))
}

/** In another role. What a vendor noted about the message was about the other one. */
function retold({ id, timestamp }: Message): { id: string; timestamp: Date } {
  return { id, timestamp }
}

function sameAs({ id, timestamp, metadata }: Message): {
  id: string
  timestamp: Date
  metadata?: NonNullable<Message['metadata']>
} {
  return { id, timestamp, metadata }
}

function remembered<K extends object, V>(memory: WeakMap<K, V>, key: K, make: () => V): V {
  const known = memory.get(key)
  if (known) return known
  const made = make()
  memory.set(key, made)
  return made
}

/** How a summary is shown in place of what it stands for. The same text gives the same message. */
export function summaryMessage(summary: string, options: MessageOptions = {}): UserMessage {
  return new UserMessage(`[Summary of the conversation so far]\n${summary}`, {
    id: `summary-${sha256Hex(summary).slice(0, 16)}`,
    timestamp: new Date(0),
    ...options,
  })
}
