import { isUserMessage, type Message } from '@skein/ai'
import { invalidRequest } from '../agent-error.ts'
import type { Middleware } from '../middleware.ts'
import { newestGroups } from './message-groups.ts'

/**
 * Keeps only the newest messages (UAP §6.2, pattern 2). What is kept begins with a user's message, and
 * calls stay with their results; so it may be a few less, or more when the last answers alone are.
 */
export function slidingWindow(maxMessages = 50): Middleware {
  if (!Number.isInteger(maxMessages) || maxMessages < 1)
    throw invalidRequest(`slidingWindow takes a whole number from 1, not ${String(maxMessages)}.`)
  return {
    name: 'sliding-window',
    before(context) {
      const { state } = context
      if (state.messages.length <= maxMessages) return
      return { ...context, state: state.withContext(newest(state.messages, maxMessages)) }
    },
  }
}

function newest(messages: readonly Message[], maxMessages: number): readonly Message[] {
  const kept = newestGroups(messages, maxMessages)
  const start = kept.findIndex(([first]) => isUserMessage(first))
  if (start >= 0) return kept.slice(start).flat()
  // Within one long run of tools: the question it belongs to comes first.
  const question = messages.findLast(isUserMessage)
  const rest = newestGroups(messages, maxMessages - 1).flat()
  return question ? [question, ...rest] : rest
}
