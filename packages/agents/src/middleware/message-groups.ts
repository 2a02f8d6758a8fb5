import { isAssistantMessage, isToolResultMessage, type Message } from '@skein/ai'

/**
 * The messages in groups that vendors accept only whole: an assistant's calls and their results.
 * Everything else is a group of its own.
 */
export function groupMessages(messages: readonly Message[]): readonly (readonly Message[])[] {
  const groups: Message[][] = []
  for (const message of messages) {
    const last = groups.at(-1)
    const answersLast = last && isAssistantMessage(last[0]) && last[0].hasToolCalls
    if (answersLast && isToolResultMessage(message)) last.push(message)
    else groups.push([message])
  }
  return groups
}

/**
 * The newest whole groups that have at most this many messages together; always the last one, which
 * may hold calls that somebody is about to answer.
 */
export function newestGroups(
  messages: readonly Message[],
  count: number,
): readonly (readonly Message[])[] {
  const groups = groupMessages(messages)
  let first = groups.length
  let size = 0
  while (first > 0) {
    const next = groups[first - 1]!.length
    if (size > 0 && size + next > count) break
    size += next
    first--
  }
  return groups.slice(first)
}
