import { isToolResultMessage, ToolResultMessage, type Message } from '@skein/ai'
import type { Middleware } from '../middleware.ts'
import { estimateTokens, sumTokens, type EstimateTokens } from './estimate-tokens.ts'

export interface PruneToolOutputsOptions {
  /** Tokens that the model takes. Default 200,000. */
  readonly contextLimit?: number
  /** Tokens of it that are kept free for the answer. Default 16,000. */
  readonly outputReserve?: number
  /** Tokens at the end that are never touched. Default 40,000. */
  readonly protectRecent?: number
  /** Default: four characters of JSON are a token. */
  readonly estimate?: EstimateTokens
  /** What the model reads instead of an output. */
  readonly placeholder?: string
}

/**
 * Clears old outputs of tools when the history grows too long for the model (UAP §6.2, pattern 1).
 * Every call keeps its result, so the history stays one that vendors accept.
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
        return recent > protectRecent ? cleared(message, placeholder) : message
      })
      return { ...context, state: state.withContext(pruned.toReversed()) }
    },
  }
}

function cleared(message: Message, placeholder: string): Message {
  if (!isToolResultMessage(message)) return message
  if (message.results.every(({ result }) => result === placeholder)) return message
  const { id, timestamp, metadata } = message
  const results = message.results.map((result) => ({ ...result, result: placeholder }))
  return new ToolResultMessage(results, { id, timestamp, ...(metadata && { metadata }) })
}
