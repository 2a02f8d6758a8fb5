import {
  isAssistantMessage,
  isToolResultMessage,
  isUserMessage,
  type Message,
  messageToJSON,
  ToolResultMessage,
  type Turn,
  UserMessage,
} from '@skein/ai'
import { invalidUse } from '../contract/agent-error.ts'
import type { Middleware } from '../contract/agent-types.ts'

/** Options of `pruneToolOutputs`. */
export interface PruneToolOutputsOptions {
  /** The number of tokens that the model accepts. Default 200,000. */
  readonly contextLimit?: number
  /** Tokens of the limit that are kept free for the answer. Default 16,000. */
  readonly outputReserve?: number
  /** Tokens at the end of the history that are never changed. Default 40,000. */
  readonly protectRecent?: number
  /** Default: counts one token per four characters of JSON. */
  readonly estimate?: EstimateTokens
  /** The text that the model sees instead of a cleared output. */
  readonly placeholder?: string
}

/**
 * Clears old tool outputs when the history grows too long for the model (UAP §6.2, pattern 1). Every call
 * keeps a result, because vendors reject a call without one.
 */
export function pruneToolOutputs(options: PruneToolOutputsOptions = {}): Middleware {
  const { contextLimit = 200_000, outputReserve = 16_000, protectRecent = 40_000 } = options
  const { estimate = estimateTokens, placeholder = '[Output cleared - context limit]' } = options
  return {
    name: 'prune-tool-outputs',
    before(context) {
      const { state } = context
      if (sumTokens(state.messages, estimate) <= contextLimit - outputReserve) return
      let recent = 0
      const pruned = state.messages.toReversed().map((message) => {
        recent += estimate(message)
        if (recent <= protectRecent || !isToolResultMessage(message)) return message
        if (message.results.every(({ result }) => result === placeholder)) return message
        const { id, timestamp, metadata } = message
        const results = message.results.map((result) => ({ ...result, result: placeholder }))
        return new ToolResultMessage(results, { id, timestamp, metadata })
      })
      return { ...context, state: state.withContext(pruned.toReversed()) }
    },
  }
}

/**
 * Keeps only the newest messages (UAP §6.2, pattern 2). The kept part starts with a user message and never
 * separates calls from their results. It may therefore be a few messages shorter than the limit, or longer if
 * the last calls and results alone exceed it.
 */
export function slidingWindow(maxMessages = 50): Middleware {
  if (!Number.isInteger(maxMessages) || maxMessages < 1)
    throw invalidUse(`slidingWindow takes a whole number from 1, not ${String(maxMessages)}.`)
  return {
    name: 'sliding-window',
    before(context) {
      const { state } = context
      const { messages } = state
      if (messages.length <= maxMessages) return
      const groups = newestGroups(messages, maxMessages)
      const start = groups.findIndex(([first]) => isUserMessage(first))
      let kept = groups.slice(start).flat()
      if (start < 0) {
        // The newest messages contain no user message, so the last user message is kept before them.
        const question = messages.findLast(isUserMessage)
        const rest = newestGroups(messages, maxMessages - 1).flat()
        kept = question ? [question, ...rest] : rest
      }
      return { ...context, state: state.withContext(kept) }
    },
  }
}

/** The model that writes the summary: `llm({ model, params: { max_tokens: 500 } })`, or a similar object. */
export interface Summarizer {
  generate(prompt: string): Promise<Pick<Turn, 'response'>>
}

/** Options of `summarize`. */
export interface SummarizeOptions {
  /** A history of more estimated tokens than this is summarised. Default 150,000. */
  readonly threshold?: number
  /** The number of messages at the end that are not summarised. Default 10. */
  readonly keepRecent?: number
  /** Default: counts one token per four characters of JSON. */
  readonly estimate?: EstimateTokens
  /** The prompt for the summarizer; the messages follow it, one JSON object per line. */
  readonly prompt?: string
}

const PROMPT = 'Summarize this conversation, preserving key facts:'

/**
 * Lets a smaller model summarise the old part of a long history, and continues with the summary and
 * the newest messages (UAP §6.2, pattern 3). Calls stay together with their results.
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
      const lines = old.map((message) => {
        const { type, content, toolCalls, results } = messageToJSON(message)
        return JSON.stringify(results ? { type, results, toolCalls } : { type, content, toolCalls })
      })
      const { response } = await summarizer.generate([prompt, ...lines].join('\n'))
      const summary = new UserMessage(`[Previous conversation summary]\n${response.text}`, {
        metadata: { uap: { synthetic: true, phase: 'summary' } },
      })
      return { ...context, state: context.state.withContext([summary, ...recent]) }
    },
  }
}

/**
 * Returns the newest messages in groups that must not be split: an assistant's calls with their results;
 * every other message is a separate group. Together the groups have at most `count` messages. The last group
 * is always included, even if it is longer, because it may contain calls that are about to be answered.
 */
function newestGroups(
  messages: readonly Message[],
  count: number,
): readonly (readonly Message[])[] {
  const groups: Message[][] = []
  for (const message of messages) {
    const last = groups.at(-1)
    const answersLast = last && isAssistantMessage(last[0]) && last[0].hasToolCalls
    if (answersLast && isToolResultMessage(message)) last.push(message)
    else groups.push([message])
  }
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

/** Estimates the tokens of a message. */
export type EstimateTokens = (message: Message) => number

const known = new WeakMap<Message, number>()

/** Estimates one token per four characters of JSON. Rough but cheap; computed once per message. */
export function estimateTokens(message: Message): number {
  const before = known.get(message)
  if (before !== undefined) return before
  let tokens = 0
  try {
    tokens = JSON.stringify(messageToJSON(message)).length / 4
  } catch {
    // A message with a value that JSON cannot express, e.g. a bigint, counts as 0 tokens; saving the state
    // reports the value.
  }
  known.set(message, tokens)
  return tokens
}

function sumTokens(messages: readonly Message[], estimate: EstimateTokens): number {
  return messages.reduce((sum, message) => sum + estimate(message), 0)
}
