import { SkeinError } from '@skein/base'
import { reason, type AdmittedCall, type CallOutcome } from '@skein/governance'
import type { ToolDefinition } from '../definitions/types.ts'
import { probeTool } from './probe-tool.ts'

/**
 * What a governor is told of a tool that threw or was cut short. A write that failed may have had its
 * effect, unless the tool says that it had none (`NoEffectError`), refused its arguments, or its probe
 * knows. `message` goes into the audit log: no secrets.
 */
export async function failedCall(
  tool: ToolDefinition,
  { call, args, risk, idempotency_key: idempotencyKey }: AdmittedCall,
  {
    error,
    message,
    signal,
  }: { readonly error: unknown; readonly message: string; readonly signal: AbortSignal },
): Promise<CallOutcome & { readonly type: 'error' }> {
  const why = reason('TOOL_ERROR', tool.name, message)
  const isClean = risk === 'read_only' || (SkeinError.is(error) && CLEAN.has(error.code))
  if (isClean) return { type: 'error', reasons: [why], effect: 'absent' }
  const effect = await probeTool(tool, args, { signal, idempotencyKey, callId: call })
  const doubt = effect === 'in_doubt' ? [reason('TOOL_IN_DOUBT', tool.name)] : []
  return { type: 'error', reasons: [why, ...doubt], effect }
}

/** Codes by which a tool says that it failed before it changed anything. */
const CLEAN: ReadonlySet<string> = new Set(['NO_EFFECT', 'TOOL_ARGUMENTS_INVALID'])
