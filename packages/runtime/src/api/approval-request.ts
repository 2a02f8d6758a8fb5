import { isPlainObject } from '@skein/base'
import type { ApprovalRequest } from '@skein/governance'

/** Whether the call that a person is asked to approve is declared as one that cannot be undone. */
export function isIrreversible(request: unknown): boolean {
  return approvalOf(request)?.action.rollback?.type === 'impossible'
}

/**
 * Finds the approval request to be signed: the request of a waiting call itself, or the one in its `approval` or
 * `request` field.
 */
export function approvalOf(request: unknown): ApprovalRequest | undefined {
  if (!isPlainObject(request)) return undefined
  if (typeof request['digest'] === 'string' && isPlainObject(request['action']))
    return request as unknown as ApprovalRequest // the governor wrote this request
  return approvalOf(request['approval'] ?? request['request'])
}
