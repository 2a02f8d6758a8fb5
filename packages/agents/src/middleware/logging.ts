import { systemClock, type Clock } from '@skein/base'
import { isUPPError, messageToJSON, type Message } from '@skein/ai'
import type { GenerateResult } from '../agent.ts'
import type { Middleware, MiddlewareContext } from '../middleware.ts'

export type LogLevel = 'debug' | 'info' | 'warn' | 'error'

/** Facts beside the line. */
export type LogDetails = Readonly<Record<string, unknown>>

export interface LoggingOptions {
  /** Lowest level that is logged. Default `info`. */
  readonly level?: LogLevel
  /** Default `console.log`. */
  readonly logger?: (line: string, details: LogDetails) => void
  /** Also log what was said. It may be private; default false. */
  readonly includeMessages?: boolean
  /** Default true. */
  readonly includeTiming?: boolean
  readonly clock?: Clock
}

const levels: readonly LogLevel[] = ['debug', 'info', 'warn', 'error']

/** Logs the start and the end of every run, or how it failed (UAP §9.3). */
export function logging(options: LoggingOptions = {}): Middleware {
  const { level = 'info', logger = consoleLog, clock = systemClock } = options
  const lowest = levels.indexOf(level)
  const startTimes = new WeakMap<object, number>()
  const log = (at: LogLevel, what: string, context: MiddlewareContext, more: LogDetails): void => {
    if (levels.indexOf(at) < lowest) return
    const { agent, state } = context
    const { sessionId } = state.metadata
    logger(`[agent ${agent.id}] ${what}`, {
      level: at,
      agentId: agent.id,
      stateId: state.id,
      ...(sessionId !== undefined && { sessionId }),
      ...more,
    })
  }
  const timing = ({ metadata }: MiddlewareContext): { text: string; details: LogDetails } => {
    const startedAt = startTimes.get(metadata)
    if (options.includeTiming === false || startedAt === undefined) return { text: '', details: {} }
    const durationMs = clock.now() - startedAt
    return { text: ` in ${durationMs} ms`, details: { durationMs } }
  }
  const content = (messages: () => readonly Message[]): { text: string; details: LogDetails } => {
    if (!options.includeMessages) return { text: '', details: {} }
    const written = messages().map(messageToJSON)
    return { text: `: ${JSON.stringify(written)}`, details: { messages: written } }
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
      const said = content(() => result.turn.messages)
      const level = result.interrupts ? 'warn' : 'info'
      log(level, `run ${endOf(result)}${text}${said.text}`, context, {
        ...details,
        ...resultDetails(result),
        ...said.details,
      })
    },
    onError(context, error) {
      const { text, details } = timing(context)
      const code = isUPPError(error) ? { code: error.code } : {}
      log('error', `run failed${text}: ${error.message}`, context, { ...details, ...code })
    },
  }
}

function consoleLog(line: string, details: LogDetails): void {
  // oxlint-disable-next-line no-console -- UAP §9.3 names it as the default
  console.log(line, details)
}

function endOf({ interrupts, stopReason = 'complete' }: GenerateResult): string {
  if (interrupts) return `waits for ${interrupts.length} answer(s)`
  return stopReason === 'complete' ? 'completed' : `stopped (${stopReason})`
}

function resultDetails({ turn, state, stopReason }: GenerateResult): LogDetails {
  const { inputTokens, outputTokens, totalTokens } = turn.usage
  return {
    ...(stopReason && { stopReason }),
    steps: state.step,
    toolCalls: turn.toolExecutions.length,
    inputTokens,
    outputTokens,
    totalTokens,
  }
}
