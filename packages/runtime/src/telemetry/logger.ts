import { type Clock, messageOf, redactSecrets, systemClock } from '@skein/base'
import { safeText } from '@skein/base/safe-text'
import type { RuntimeEvent } from '../contract/event.ts'
import type { EventOf } from '../contract/event-of.ts'
import type { KernelState } from '../state/kernel-state.ts'
import type { ThreadHead } from '../store/head.ts'

/**
 * A logger with the methods of pino's: each is called with details and a message. A logger of pino can
 * be passed as it is.
 */
export interface RuntimeLogger {
  /** The lowest level that the logger writes, if the logger says so. */
  readonly level?: string
  trace?(details: object, message?: string): void
  debug(details: object, message?: string): void
  info(details: object, message?: string): void
  warn(details: object, message?: string): void
  error(details: object, message?: string): void
  child?(bindings: Record<string, unknown>): RuntimeLogger
}

/** The levels of `lineLogger`, least important first, with pino's numbers. */
const LEVELS = { trace: 10, debug: 20, info: 30, warn: 40, error: 50 } as const
type Level = keyof typeof LEVELS

/** Options of `lineLogger`. */
export interface LineLoggerOptions {
  /** `json`: one JSON object per line, with pino's names. `text`: for people. */
  readonly format: 'json' | 'text'
  /** Writes one line, without its line break. Default: standard error. */
  readonly write?: (line: string) => void
  /** The lowest level that is written; `silent` writes nothing. Default `info`. */
  readonly level?: Level | 'silent'
  readonly clock?: Clock
}

/**
 * Creates a logger that writes lines, for programs without a logger of their own.
 *
 *     await serve(runtime, { port: 8080, auth, logger: lineLogger({ format: 'json' }) })
 */
export function lineLogger(options: LineLoggerOptions): Required<RuntimeLogger> {
  return bound(options, {})
}

function bound(options: LineLoggerOptions, bindings: object): Required<RuntimeLogger> {
  const { format, level = 'info', clock = systemClock } = options
  const { write = (line: string) => void process.stderr.write(`${line}\n`) } = options
  const lowest = level === 'silent' ? Infinity : LEVELS[level]
  const at =
    (name: Level) =>
    (details: object, message = ''): void => {
      if (LEVELS[name] < lowest) return
      const line = { level: LEVELS[name], time: clock.now(), ...bindings, ...details, msg: message }
      write(format === 'json' ? JSON.stringify(line) : textLine(name, line))
    }
  return {
    level,
    trace: at('trace'),
    debug: at('debug'),
    info: at('info'),
    warn: at('warn'),
    error: at('error'),
    child: (more) => bound(options, { ...bindings, ...more }),
  }
}

/** Formats a line for people: the time, the level unless it is `info`, the message, then the details. */
function textLine(name: Level, line: { readonly time: number; readonly msg: string }): string {
  const { time, msg, level: _, err, ...details } = line as typeof line & Record<string, unknown>
  const parts = [new Date(time).toISOString().slice(11, 19)]
  if (name !== 'info') parts.push(`${name}:`)
  if (msg !== '') parts.push(msg)
  for (const [key, value] of Object.entries(details))
    if (value !== undefined)
      parts.push(`${key}=${typeof value === 'string' ? value : JSON.stringify(value)}`)
  if (err) {
    const { name: type, code, message, hint } = err as LoggedError
    // Errors without a code, such as those of JavaScript, are known by their type.
    const isTyped = code === undefined && type !== 'Error' && type.endsWith('Error')
    parts.push(
      `${isTyped ? `${type}: ` : ''}${message}${code === undefined ? '' : ` [${code}]`}${hint ? ` ${hint}` : ''}`,
    )
  }
  // A stack of several lines is what a developer looks for when something failed.
  const stack = name === 'error' ? ((err as LoggedError | undefined)?.stack ?? '') : ''
  const calls = stack.split('\n').filter((text) => text.trimStart().startsWith('at '))
  return [parts.join(' '), ...calls.slice(0, STACK_LINES)]
    .map((text) => safeText(text, { isLine: true }))
    .join('\n')
}

/** How many lines of a stack are written for people. */
const STACK_LINES = 8

/** An error in the form in which it is logged; pino treats it like an `Error`. */
interface LoggedError {
  readonly name: string
  readonly message: string
  readonly code?: string
  readonly hint?: string
  readonly stack?: string
}

/** Returns a logger that never throws, because a disk that is full of logs must not stop a thread. */
export function guardedLogger(logger: RuntimeLogger): RuntimeLogger {
  const at =
    (level: 'debug' | 'info' | 'warn' | 'error') =>
    (details: object, message?: string): void => {
      try {
        logger[level](details, message)
      } catch {
        // There is nowhere to report that the log cannot be written.
      }
    }
  return { debug: at('debug'), info: at('info'), warn: at('warn'), error: at('error') }
}

/** For each error, the function that removes secrets from its texts. It is set by code that knows the secrets. */
const redactors = new WeakMap<object, (text: string) => string>()

/** Remembers how to remove the secrets of a thread from an error that was thrown in that thread. */
export function rememberRedactor(error: unknown, redact: (text: string) => string): void {
  if (typeof error === 'object' && error !== null && !redactors.has(error))
    redactors.set(error, redact)
}

/** Converts an error for a log line, without secrets. `secrets` are those of the HTTP request, if there is one. */
export function loggedError(error: unknown, secrets: readonly string[] = []): LoggedError {
  const own = typeof error === 'object' && error !== null ? redactors.get(error) : undefined
  const safe = (text: string): string => {
    try {
      return redactSecrets(own?.(text) ?? text, secrets)
    } catch {
      return '[redacted: the secrets of the thread cannot be read]'
    }
  }
  const { code, hint, stack } = (error instanceof Error ? error : {}) as Partial<LoggedError>
  const fields: Record<string, string> = {
    name: error instanceof Error ? error.name : typeof error,
    message: safe(messageOf(error)),
  }
  if (typeof code === 'string') fields['code'] = code
  if (typeof hint === 'string') fields['hint'] = safe(hint)
  if (typeof stack === 'string') fields['stack'] = safe(stack)
  // Without a prototype, pino shows `name` as the type of the error; otherwise it would show the constructor's name.
  return Object.setPrototypeOf(fields, null) as LoggedError
}

/** Logs events that were committed. They contain no secrets; texts of conversations are left out. */
export function logEvents(
  logger: RuntimeLogger,
  { head, state }: { readonly head: ThreadHead; readonly state: KernelState },
  events: readonly RuntimeEvent[],
): void {
  for (const event of events) {
    const place = { threadId: head.id, tenant: head.tenant, agent: state.agent }
    switch (event.type) {
      case 'session_start':
        logger.debug({ ...place, sessionId: event.sessionId }, 'session started')
        break
      case 'session_end': {
        const { sessionId, outcome, reason, message, at } = event
        const ms = Date.parse(at) - Date.parse(state.session?.startedAt ?? at)
        const details = { ...place, sessionId, outcome, reason, ms }
        if (outcome === 'failed') logger.warn({ ...details, why: message }, 'session failed')
        else logger.info(details, `session ${outcome}`)
        break
      }
      case 'step_failed': {
        const { code, message, retryAt } = event
        logger.warn({ ...place, code, why: message, retryAt }, 'model request failed')
        break
      }
      case 'error_raised':
        logger.error({ ...place, code: event.code, why: event.message }, 'error')
        break
      case 'tool_execution_end': {
        const { toolName, toolCallId, outcome } = event
        logger.debug({ ...place, toolName, toolCallId, outcome }, 'call ended')
        break
      }
      case 'interrupt_opened': {
        const { kind, toolCallId } = event.interrupt
        logger.info({ ...place, kind, toolCallId }, 'call waits')
        break
      }
      default:
        event satisfies Unlogged
    }
  }
}

/** Events without a line in the log. */
// prettier-ignore
type Unlogged = EventOf<
  'thread_created' | 'thread_updated' | 'thread_terminated' | 'thread_erased' | 'status_changed' |
  'session_failing' | 'write_undone' | 'undo_decided' | 'message_queued' | 'message_unqueued' |
  'message_added' | 'message_updated' | 'call_changed' | 'message_removed' | 'delivery_changed' |
  'turn_start' | 'turn_end' | 'step_start' | 'step_reset' | 'text_delta' |
  'tool_execution_start' | 'late_result' | 'call_reset' | 'interrupt_answered' |
  'subagent_created' | 'subagent_updated' | 'subagent_ended' | 'agent_handoff' |
  'context_compacted' | 'gate_decided' | 'model_requested' | 'model_answered' |
  'inference_recorded' | 'usage_recorded' | 'agent_registered' | 'step_end' | 'reasoning_delta' |
  'tool_call_delta' | 'tool_execution_progress' | 'tool_call_hidden' | 'file_written' |
  'file_removed' | 'source_added' | 'evidence_added' | 'custom_event' | 'session_stop_requested' |
  'immediate_done' | 'stop_requested' | 'turn_cut' | 'resume_requested' | 'value_set' |
  'env_set' | 'effect_scheduled' | 'effect_started' | 'effect_ended' | 'variables_requested' |
  'variables_provided' | 'variables_settled' | 'grant_made' | 'grant_revoked'
>
