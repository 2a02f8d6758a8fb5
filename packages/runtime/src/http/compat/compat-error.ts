import { SkeinError, type JsonObject } from '@skein/base'
import { ErrorCode, UPPError } from '@skein/ai'
import type { WaitingItem } from '../../contract/runtime-api.ts'

/** An error that clients of both vendors understand. */
export function compatRefusal(
  message: string,
  {
    code = ErrorCode.InvalidRequest,
    statusCode = 400,
  }: { code?: ErrorCode; statusCode?: number } = {},
): UPPError {
  return new UPPError(message, { code, provider: 'gateway', modality: 'llm', statusCode })
}

/** The same error for a thread of somebody else as for one that does not exist. */
export function conversationNotFound(): UPPError {
  return compatRefusal('There is no such conversation.', { statusCode: 404 })
}

/** Errors of the runtime that a client may read; everything else stays as it is. */
export function toRefusal(error: unknown): unknown {
  if (!SkeinError.is(error) || error instanceof UPPError) return error
  if (error.code === 'THREAD_NOT_FOUND') return conversationNotFound()
  const statusCode = STATUS[error.code]
  return statusCode === undefined ? error : compatRefusal(error.message, { statusCode })
}

const STATUS: Readonly<Record<string, number>> = {
  THREAD_TERMINATED: 409,
  ALREADY_ANSWERED: 409,
  INTERRUPT_NOT_FOUND: 409,
  ANSWER_INVALID: 400,
  INPUT_INVALID: 400,
  RUNTIME_STOPPED: 503,
}

/** A person has to decide before the answer can be given. */
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
