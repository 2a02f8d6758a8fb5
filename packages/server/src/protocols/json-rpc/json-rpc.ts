import type { JsonObject, JsonValue } from '@skein/base'
import { jsonResponse } from '../../operations/operation.ts'
import { answer, anything, exactly, label, object, type Shape } from '@skein/base/shape'

/** The id of a JSON-RPC request. */
export type RpcId = string | number | null

const rpcId: Shape<RpcId> = { type: ['string', 'number', 'null'], maxLength: 2000 }

/** A JSON-RPC message: a request, a notification (without id), or a response (without method). */
export interface RpcBody {
  readonly jsonrpc: '2.0'
  readonly id?: RpcId
  readonly method?: string
  readonly params?: JsonObject
  readonly result?: JsonValue
  readonly error?: JsonValue
}

/** The shape of a JSON-RPC message. */
export const RPC_BODY: Shape<RpcBody> = answer({
  jsonrpc: exactly('2.0'),
  'id?': rpcId,
  'method?': label(200),
  'params?': object,
  'result?': anything,
  'error?': anything,
})

/** The error codes of JSON-RPC 2.0, section 5.1 that are used. */
export const RpcCode: Readonly<Record<'MethodNotFound' | 'InvalidParams', number>> = {
  MethodNotFound: -32601,
  InvalidParams: -32602,
}

/** Creates the response to a request that succeeded. */
export function rpcResult(
  id: RpcId,
  result: JsonObject,
  headers?: Record<string, string>,
): Response {
  return jsonResponse({ jsonrpc: '2.0', id, result }, { headers })
}

/** Creates the response to a request that failed. JSON-RPC over HTTP sends it with status 200. */
export function rpcError(id: RpcId, code: number, message: string, data?: JsonValue): Response {
  return jsonResponse({ jsonrpc: '2.0', id, error: { code, message, data } })
}

/** Drops members that are undefined, which JSON does not have. */
export function withoutUndefined(fields: Record<string, JsonValue | undefined>): JsonObject {
  const members: Record<string, JsonValue> = {}
  for (const [name, value] of Object.entries(fields)) if (value !== undefined) members[name] = value
  return members
}
