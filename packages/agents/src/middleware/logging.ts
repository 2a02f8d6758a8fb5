import { type Clock, systemClock } from '@skein/base'
import { safeLogLine } from '@skein/base/safe-text'
import { isUPPError, type Message, messageToJSON, type ToolResult } from '@skein/ai'
import type { Middleware, MiddlewareContext } from '../contract/agent-types.ts'

/** The importance of a log line. */
type Level = 'debug' | 'info' | 'warn' | 'error'

/** The data of a log line. */
export type AgentLogDetails = Readonly<Record<string, unknown>>

/** Options of `logging`. */
export interface AgentLoggingOptions {
  /** Lowest level that is logged. Default `info`. */
  readonly level?: Level
  /** Default `console.log`. */
  readonly logger?: (line: string, details: AgentLogDetails) => void
  /** Whether to log the messages, which may be private. Default false. */
  readonly includeMessages?: boolean
  /** Default true. */
  readonly includeTiming?: boolean
  readonly clock?: Clock
}

const levels: readonly Level[] = ['debug', 'info', 'warn', 'error']

/** Logs the start and the end or failure of every run (UAP §9.3). */
export function logging(options: AgentLoggingOptions = {}): Middleware {
  const { level = 'info', logger = logToConsole, clock = systemClock } = options
  const lowest = levels.indexOf(level)
  const startTimes = new WeakMap<object, number>()
  const log = (
    at: Level,
    what: string,
    context: MiddlewareContext,
    more: AgentLogDetails,
  ): void => {
    if (levels.indexOf(at) < lowest) return
    const { agent, state } = context
    const { sessionId } = state.metadata
    logger(`[agent ${agent.id}] ${what}`, {
      level: at,
      agentId: agent.id,
      stateId: state.id,
      sessionId,
      ...more,
    })
  }
  const timing = ({ metadata }: MiddlewareContext): { text: string; details: AgentLogDetails } => {
    const startedAt = startTimes.get(metadata)
    if (options.includeTiming === false || startedAt === undefined) return { text: '', details: {} }
    const durationMs = clock.now() - startedAt
    return { text: ` in ${durationMs} ms`, details: { durationMs } }
  }
  const content = (
    messages: () => readonly Message[],
  ): { text: string; details: AgentLogDetails } => {
    if (!options.includeMessages) return { text: '', details: {} }
    const messageJson = messages().map(messageToJSON)
    return { text: `: ${JSON.stringify(messageJson)}`, details: { messages: messageJson } }
  }
  return {
    name: 'logging',
    before(context) {
      startTimes.set(context.metadata, clock.now())
      const { text, details } = content(() => [context.input])
      log('info', `run started${text}`, context, details)
      log('debug', `history has ${context.state.messages.length} messages`, context, {
        messageCount: context.state.messages.length,
        step: context.state.step,
      })
    },
    after(context, result) {
      const { text, details } = timing(context)
      const texts = content(() => result.turn.messages)
      const level = result.interrupts ? 'warn' : 'info'
      const { turn, state, stopReason, interrupts } = result
      const { inputTokens, outputTokens, totalTokens } = turn.usage
      let ended = 'completed'
      if (interrupts) ended = `waits for ${interrupts.length} answer(s)`
      else if (stopReason && stopReason !== 'complete') ended = `stopped (${stopReason})`
      log(level, `run ${ended}${text}${texts.text}`, context, {
        ...details,
        stopReason,
        steps: state.step,
        toolCalls: turn.toolExecutions.length,
        inputTokens,
        outputTokens,
        totalTokens,
        ...texts.details,
      })
    },
    onError(context, error) {
      const { text, details } = timing(context)
      const { code, turn } = isUPPError(error) ? error : {}
      const messages = [...context.state.messages, context.input, ...(turn?.messages ?? [])]
      const message = options.includeMessages
        ? error.message
        : withoutQuotes(error.message, messages)
      log('error', `run failed${text}: ${message}`, context, code ? { ...details, code } : details)
    },
  }
}

/**
 * Replaces what an error message quotes of the messages, e.g. the output of a tool because of which a step of a
 * plan failed. Only whole words are replaced, because a message may be as short as "a".
 */
function withoutQuotes(text: string, messages: readonly Message[]): string {
  const quotes = messages
    .flatMap((one) => (one.type === 'tool_result' ? one.results.map(textOfResult) : one.text))
    .filter((quote) => quote.trim() !== '' && text.includes(quote))
    .map((quote) => quote.replaceAll(/[\\^$.*+?()[\]{}|]/g, String.raw`\$&`))
  if (quotes.length === 0) return text
  // The longest first: a text may contain another one.
  const any = quotes.toSorted((a, b) => b.length - a.length).join('|')
  const word = String.raw`[\p{L}\p{N}]`
  return text.replaceAll(new RegExp(`(?<!${word})(?:${any})(?!${word})`, 'gu'), '…')
}

function textOfResult({ result }: ToolResult): string {
  return typeof result === 'string' ? result : ''
}

function logToConsole(line: string, details: AgentLogDetails): void {
  // A person reads the line and it may quote a model, so control characters are escaped; the console escapes
  // `details`.
  // oxlint-disable-next-line no-console -- UAP §9.3 names it as the default
  console.log(safeLogLine(line), details)
}
