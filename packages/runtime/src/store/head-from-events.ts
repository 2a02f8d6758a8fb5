import { isPlainObject } from '@skein/base'
import { safeText } from '@skein/base/safe-text'
import { labelText } from './storable-text.ts'
import type { ThreadHead } from './head.ts'
import type { RuntimeEvent } from '../contract/event.ts'

const FIRST_WORDS = 120

/**
 * Returns the beginning of the first message to a thread, for a list: on one line, without characters
 * that hide or reorder others. Null if the events have no such message.
 */
export function firstWordsIn(events: readonly RuntimeEvent[]): string | null {
  for (const event of events) {
    if (event.type !== 'message_queued' && event.type !== 'message_added') continue
    const { message, isSilent, metadata } = event
    // The list of subagents (`registry`) is skipped: the runtime writes it as a user message.
    if (isSilent || message.type !== 'user' || metadata?.['kind'] === 'registry') continue
    const text = message.content
      .map((block) => (block.type === 'text' ? block.text : ''))
      .join(' ')
      .slice(0, 50 * FIRST_WORDS)
      .replace(/\s+/g, ' ')
      .trim()
    if (text === '') continue
    // Most texts are plain ASCII; checking that is faster than calling `safeText`.
    const isPlain = /^[\x20-\x7e]*$/.test(text)
    const line = isPlain ? text : labelText(safeText(text, { isLine: true }))
    const characters = Array.from(line.slice(0, 2 * FIRST_WORDS + 2))
    return characters.length > FIRST_WORDS
      ? `${characters.slice(0, FIRST_WORDS - 1).join('')}…`
      : line
  }
  return null
}

/** How many tools a thread's row names at most, and how long a name may be: models may call tools that do not exist. */
const MAX_TOOLS = 200

const MAX_TOOL_NAME = 200

/** Returns the known names and the names of the tools that events call; the same list if there is no new name. */
export function calledTools(
  known: readonly string[],
  events: readonly Pick<RuntimeEvent, 'type'>[],
): readonly string[] {
  let all = known
  for (const event of events) {
    if (event.type !== 'message_added') continue
    // Events of other versions of the runtime may have another form, so every field is checked.
    const { message } = event as { readonly message?: { readonly toolCalls?: readonly unknown[] } }
    if (!Array.isArray(message?.toolCalls)) continue
    for (const call of message.toolCalls as readonly { readonly toolName?: unknown }[]) {
      const { toolName } = call ?? {}
      const name = typeof toolName === 'string' ? labelText(toolName.slice(0, MAX_TOOL_NAME)) : ''
      if (name !== '' && !all.includes(name) && all.length < MAX_TOOLS) all = [...all, name]
    }
  }
  return all
}

/** Returns the latest end of a grant, with the grants that the events make. */
export function grantEnd(before: number | null, events: readonly RuntimeEvent[]): number | null {
  let last = before
  for (const event of events)
    if (event.type === 'grant_made') last = Math.max(last ?? 0, Date.parse(event.expiresAt) || 0)
  return last
}

/** Returns where a thread was forked from, if its first event says so. */
export function forkIn([first]: readonly RuntimeEvent[]): ThreadHead['forkedFrom'] {
  const from = first?.type === 'thread_created' ? first.metadata?.['forked_from'] : undefined
  if (!isPlainObject(from) || typeof from['thread_id'] !== 'string') return null
  const messageId = from['message_id']
  const id = typeof messageId === 'string' ? labelText(messageId) : null
  return { threadId: labelText(from['thread_id']), messageId: id }
}
