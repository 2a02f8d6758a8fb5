import { messageToJSON, UserMessage, type Message, type Turn } from '@skein/ai'
import type { Middleware } from '../middleware.ts'
import { estimateTokens, sumTokens, type EstimateTokens } from './estimate-tokens.ts'
import { newestGroups } from './message-groups.ts'

/** What writes the summary: `llm({ model, params: { max_tokens: 500 } })`, or anything like it. */
export interface Summarizer {
  generate(prompt: string): Promise<Pick<Turn, 'response'>>
}

export interface SummarizeOptions {
  /** Estimated tokens of history from which on it is summarised. Default 150,000. */
  readonly threshold?: number
  /** Messages at the end that stay as they are. Default 10. */
  readonly keepRecent?: number
  /** Default: four characters of JSON are a token. */
  readonly estimate?: EstimateTokens
  /** What the summarizer is asked; the messages follow, one JSON object a line. */
  readonly prompt?: string
}

const PROMPT = 'Summarize this conversation, preserving key facts:'

/**
 * Lets a smaller model summarise the old part of a long history and goes on with the summary and the
 * newest messages (UAP §6.2, pattern 3). Calls stay with their results.
 */
export function summarize(summarizer: Summarizer, options: SummarizeOptions = {}): Middleware {
  const { threshold = 150_000, keepRecent = 10, estimate = estimateTokens } = options
  const { prompt = PROMPT } = options
  return {
    name: 'summarize-context',
    async before(context) {
      const { messages } = context.state
      if (sumTokens(messages, estimate) <= threshold) return
      const recent = newestGroups(messages, keepRecent).flat()
      const old = messages.slice(0, messages.length - recent.length)
      if (old.length === 0) return
      const summary = await summarizer.generate(`${prompt}\n${old.map(toLine).join('\n')}`)
      const state = context.state.withContext([toMessage(summary.response.text), ...recent])
      return { ...context, state }
    },
  }
}

function toLine(message: Message): string {
  const { type, content, toolCalls, results } = messageToJSON(message)
  return JSON.stringify({ type, ...(results ? { results } : { content }), toolCalls })
}

function toMessage(summary: string): UserMessage {
  const metadata = { uap: { synthetic: true, phase: 'summary' } }
  return new UserMessage(`[Previous conversation summary]\n${summary}`, { metadata })
}
