import { emitChunk } from './chunks.ts'
import type { GovernedContext } from '../governed.ts'
import { reason, refusal } from '../reason.ts'
import type { AdmittedCall, GovernedRequest } from './request.ts'

/** What a tool is given beside its arguments. */
export function contextOf(
  request: GovernedRequest,
  call: AdmittedCall,
  signal: AbortSignal = request.controller.signal,
): GovernedContext {
  return {
    signal,
    idempotencyKey: call.idempotency_key,
    requestId: call.request_id,
    traceId: request.state.trace_id,
    callId: call.call,
    chunk: (text) => {
      if (call.risk !== 'read_only') {
        throw refusal(call.tool, [reason('POLICY_BLOCKED', call.tool, 'only reads may stream')])
      }
      emitChunk(request, text)
    },
  }
}
