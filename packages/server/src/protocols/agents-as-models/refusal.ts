import { SkeinError, type JsonObject } from '@skein/base'
import { ErrorCode, UPPError } from '@skein/ai'
import type { WaitingItem } from '@skein/runtime'

/** Creates an error that clients of OpenAI and of Anthropic can read. */
export function compatRefusal(
  message: string,
  {
    code = ErrorCode.InvalidRequest,
    statusCode = 400,
    retryAfterMs,
  }: { code?: ErrorCode; statusCode?: number; retryAfterMs?: number | undefined } = {},
): UPPError {
  const origin = { provider: 'gateway', modality: 'llm' } as const
  return new UPPError(message, { code, ...origin, statusCode, retryAfterMs })
}

/**
 * Creates the error for a missing conversation. Conversations of other clients give the same error, so that
 * no client learns that they exist.
 */
export function conversationNotFound(): UPPError {
  return compatRefusal('There is no such conversation.', { statusCode: 404 })
}

/** Converts runtime errors that a client may read; returns all other errors unchanged. */
export function toRefusal(error: unknown): unknown {
  if (!SkeinError.is(error) || error instanceof UPPError) return error
  if (error.code === 'THREAD_NOT_FOUND') return conversationNotFound()
  // The tools of a client are stored as a value of the thread, so an invalid value means invalid tools.
  if (error.code === 'VALUE_INVALID')
    return compatRefusal(
      'The tools of the request are too large, or have a text that is not Unicode.',
    )
  const statusCode = STATUS[error.code]
  if (statusCode === undefined) return error
  const code = CODES[statusCode] ?? ErrorCode.InvalidRequest
  const { retryAfterMs } = error as { readonly retryAfterMs?: number }
  const message = error.hint === undefined ? error.message : `${error.message} ${error.hint}`
  return compatRefusal(message, { code, statusCode, retryAfterMs })
}

const CODES: Readonly<Record<number, ErrorCode>> = {
  403: ErrorCode.AuthenticationFailed,
  429: ErrorCode.RateLimited,
}

const STATUS: Readonly<Record<string, number>> = {
  THREAD_TERMINATED: 409,
  ALREADY_ANSWERED: 409,
  INTERRUPT_NOT_FOUND: 409,
  ANSWER_INVALID: 400,
  SCOPE_MISSING: 403,
  INPUT_INVALID: 400,
  RUNTIME_STOPPED: 503,
  SPENDING_LIMIT: 429,
}

/** The error for an answer that needs a person's decision first. */
export class ApprovalRequiredError extends UPPError {
  readonly fields: JsonObject

  constructor(items: readonly WaitingItem[], prefix: string) {
    const approvals = items.map(({ threadId, interruptId, toolName, kind }) => ({
      thread_id: threadId,
      interrupt_id: interruptId,
      tool: toolName,
      kind,
      url: `${prefix}/approvals/${encodeURIComponent(threadId)}/${encodeURIComponent(interruptId)}`,
    }))
    super(
      `A person has to decide first: POST ${approvals.map(({ url }) => url).join(', ')}. The run then continues by itself; its thread has the result.`,
      {
        code: ErrorCode.InvalidRequest,
        provider: 'gateway',
        modality: 'llm',
        statusCode: 409,
      },
    )
    this.fields = { code: 'APPROVAL_REQUIRED', approvals }
  }
}
