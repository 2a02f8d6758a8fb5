import { emitChunk } from './chunks.ts'
import type { GovernedContext } from '../governed.ts'
import { GovernanceError, reason } from '../reason.ts'
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
      if (call.risk !== 'read_only') throw writesMustNotStream(call)
      emitChunk(request, text)
    },
  }
}

function writesMustNotStream({ tool, risk }: AdmittedCall): GovernanceError {
  return new GovernanceError(
    `The tool "${tool}" (${risk}) tried to stream; only read-only tools may.`,
    [reason('POLICY_BLOCKED', tool, 'streaming from a write')],
  )
}
