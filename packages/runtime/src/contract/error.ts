import { SkeinError } from '@skein/base'

/** The stable codes of the runtime's errors. */
export type RuntimeErrorCode =
  | 'DEFINITION_INVALID'
  | 'AGENT_NOT_FOUND'
  | 'THREAD_NOT_FOUND'
  | 'THREAD_TERMINATED'
  | 'THREAD_BUSY'
  | 'CLIENT_ID_TAKEN'
  | 'MESSAGE_NOT_FOUND'
  | 'FILE_NOT_FOUND'
  | 'FILE_PATH_INVALID'
  | 'FILE_TOO_LARGE'
  | 'VALUE_INVALID'
  | 'ENV_MISSING'
  | 'ENV_INVALID'
  | 'EFFECT_NOT_FOUND'
  | 'EFFECT_INVALID'
  | 'EFFECT_UNKNOWN'
  | 'HOOK_ANSWER'
  | 'INTERRUPT_NOT_FOUND'
  | 'ALREADY_ANSWERED'
  | 'GRANT_NOT_FOUND'
  | 'ANSWER_INVALID'
  | 'REQUEST_NOT_FOUND'
  | 'REQUEST_EXPIRED'
  | 'VARIABLES_MISSING'
  | 'TOOL_NOT_ALLOWED'
  | 'INPUT_INVALID'
  | 'LOG_NOT_FOUND'
  | 'LOG_VERSION'
  | 'BUDGET_EXCEEDED'
  | 'SPENDING_LIMIT'
  | 'DEPTH_EXCEEDED'
  | 'KEY_INVALID'
  | 'SECRET_KEY_MISSING'
  | 'STATE_CONFLICT'
  | 'RUNTIME_NOT_STARTED'
  | 'RUNTIME_STOPPED'
  | 'LEASE_LOST'
  | 'AGENT_DIVERGED'
  | 'LOOP_BLOCKED'
  | 'TOOL_WORKER_FAILED'
  | 'NODE_KEYS_DIFFER'
  | 'NODE_UNREACHABLE'

/** An error that the runtime throws, with a stable code. */
export class RuntimeError extends SkeinError {
  declare readonly code: RuntimeErrorCode
  /** The time in ms after which the same request would succeed, if it is known. */
  readonly retryAfterMs: number | undefined

  constructor(
    message: string,
    options: {
      readonly code: RuntimeErrorCode
      readonly hint?: string
      readonly cause?: unknown
      readonly retryAfterMs?: number
    },
  ) {
    super(message, options)
    this.retryAfterMs = options.retryAfterMs
  }
}

/** Finds the error of a spending limit in an error and its causes; returns undefined if there is none. */
export function spendingLimitOf(error: unknown): RuntimeError | undefined {
  for (let at = error; at instanceof Error; at = at.cause)
    if (at instanceof RuntimeError && at.code === 'SPENDING_LIMIT') return at
  return undefined
}

/** Why work on threads is aborted when the runtime stops. */
export class StoppingError extends RuntimeError {
  /** Whether a write that runs has its grace to end; not if the caller of `stop` gave the work no time. */
  readonly hasGrace: boolean

  constructor(hasGrace: boolean) {
    super('The runtime is stopping.', { code: 'RUNTIME_STOPPED' })
    this.hasGrace = hasGrace
  }
}
