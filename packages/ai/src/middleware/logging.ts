import { safeLogLine } from '@skein/base/safe-text'
import { isUPPError } from '../contract/error.ts'
import type { AnyResponse, Middleware, MiddlewareContext } from '../contract/middleware.ts'
import { redactConfig } from '../transport/config-secrets.ts'
import type { ToolCall } from '../contract/tool.ts'

/** The log levels by name, least important first. */
export const LogLevel = { Debug: 'debug', Info: 'info', Warn: 'warn', Error: 'error' } as const
/** A log level. */
export type LogLevel = (typeof LogLevel)[keyof typeof LogLevel]

/** Data that is logged with the message. It never contains conversation content or secrets. */
export type LogDetails = Readonly<Record<string, string | number | boolean | undefined>>
/** Writes one log line. */
export type Logger = (level: LogLevel, message: string, details: LogDetails) => void

/** Settings of `loggingMiddleware` (UPP §10.7). */
export interface LoggingOptions {
  /** Lowest level that is logged. Default `info`. */
  readonly level?: LogLevel
  /** Default: the method of `console` that is named like the level. */
  readonly logger?: Logger
}

const levels: readonly LogLevel[] = ['debug', 'info', 'warn', 'error']

/** Logs the start, the tool calls, and the end or failure of each call. */
export function loggingMiddleware({
  level = 'info',
  logger = logToConsole,
}: LoggingOptions = {}): Middleware {
  const lowest = levels.indexOf(level)
  const log = (
    at: LogLevel,
    what: string,
    context: MiddlewareContext,
    details: LogDetails = {},
  ) => {
    if (levels.indexOf(at) < lowest) return
    const { config } = context.request
    const { provider, modelId, modality } = context
    const entries = Object.entries(details).map(([key, value]) => [
      key,
      typeof value === 'string' ? redactConfig(value, config) : value,
    ])
    logger(at, redactConfig(`[${modality}] ${provider}/${modelId} ${what}`, config), {
      provider,
      modelId,
      modality,
      ...Object.fromEntries(entries),
    })
  }
  return {
    name: 'logging',
    onStart: (context) => log('info', 'started', context, { streaming: context.streaming }),
    onRequest: (context) =>
      log('debug', 'request', context, {
        params: Object.keys(context.request.params).join(', '),
        ...('messages' in context.request && {
          messages: context.request.messages.length,
          tools: context.request.tools.map((tool) => tool.name).join(', '),
        }),
      }),
    onCycle: (_, cycle, context) => log('debug', `inference ${cycle}`, context, { cycle }),
    onToolCall: (call, context) => log('debug', toolText(call, 'called'), context, ids(call)),
    onToolResult: (call, _, context) =>
      log('debug', toolText(call, 'returned'), context, ids(call)),
    onResponse: (context) => log('debug', 'response', context),
    onEnd: (context) =>
      log('info', 'ended', context, {
        ...durationOf(context),
        ...(context.response && responseDetails(context.response)),
      }),
    onAbort: (_, context) => log('warn', 'was cancelled', context, durationOf(context)),
    onError: (error, context) =>
      log('error', `failed: ${error.message}`, context, {
        ...durationOf(context),
        ...(isUPPError(error) && {
          code: error.code,
          statusCode: error.statusCode,
          vendorCode: error.vendorCode,
          requestId: error.requestId,
        }),
      }),
  }
}

/** Escapes control characters, because tool names and vendor texts come from outside and could command a terminal. */
function logToConsole(level: LogLevel, message: string, details: LogDetails): void {
  const safe = (value: unknown): unknown => (typeof value === 'string' ? safeLogLine(value) : value)
  const entries = Object.entries(details).map(([key, value]) => [key, safe(value)])
  console[level](safe(message), Object.fromEntries(entries))
}

function toolText({ toolName }: ToolCall, what: string): string {
  return `tool ${toolName} ${what}`
}

function ids({ toolName, toolCallId }: ToolCall): LogDetails {
  return { toolName, toolCallId }
}

function durationOf({ startTime, endTime = startTime }: MiddlewareContext): LogDetails {
  return { durationMs: endTime - startTime }
}

function responseDetails(response: AnyResponse): LogDetails {
  if ('cycles' in response) {
    const { cycles, stopReason, usage } = response
    const { inputTokens, outputTokens, totalTokens } = usage
    return { cycles, stopReason, inputTokens, outputTokens, totalTokens }
  }
  return 'embeddings' in response
    ? { embeddings: response.embeddings.length, totalTokens: response.usage.totalTokens }
    : { images: response.images.length }
}
