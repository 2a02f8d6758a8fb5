import { isPlainObject, type JsonObject, type JsonValue, tryParseJson, uuidV7 } from '@skein/base'
import { HttpError } from '../../operations/http-error.ts'
import { done, operation, raw, stream, type OperationRoute } from '../../operations/operation.ts'
import { accountOf, actorOf, findThread } from '../../operations/principal.ts'
import { object } from '@skein/base/shape'
import { threadPartId, parseThreadPartId } from '../thread-part-id.ts'
import { giveAnswer, type OutsideAnswer } from '../json-rpc/waiting-call.ts'
import {
  RPC_BODY,
  RpcCode,
  rpcError,
  rpcResult,
  withoutUndefined,
  type RpcId,
} from '../json-rpc/json-rpc.ts'
import { eventResponse } from '../../streams/event-stream.ts'
import { answerCall, type McpCall, type McpSession, mcpCallsOf, parseEventId } from './mcp-call.ts'
import { callTool, serverTools } from './mcp-tools.ts'

/** The versions of MCP that are spoken, the newest first. */
const VERSIONS: readonly string[] = ['2025-11-25', '2025-06-18', '2025-03-26']

/**
 * The operations that serve an agent to clients of the Model Context Protocol over its Streamable HTTP
 * transport. Nothing is kept between requests: ids of sessions, events and questions contain what they name,
 * so any server of the same store can answer.
 */
export const mcpOperations: readonly OperationRoute[] = [
  operation('mcp', {
    tag: 'mcp',
    summary: 'An agent as an MCP server, with the tools `ask`, `continue` and `status`.',
    scope: 'threads:write',
    probe: { body: { jsonrpc: '2.0', id: 1, method: 'tools/list' } },
    body: { json: RPC_BODY },
    answers: [
      raw('The response to a JSON-RPC request.', 'application/json', object),
      stream(
        'For `ask` and `continue`: questions to a person, progress, and at last the response.',
      ),
      done('A notification or the answer to a question was accepted.', 202),
    ],
    errors: ['AGENT_NOT_FOUND', 'THREAD_NOT_FOUND', 'ANSWER_INVALID', 'STREAM_LIMIT'],
    async run(call) {
      const { runtime, params, body } = call
      const agent = runtime.registry.agent(params.agent) // throws when there is no such agent
      const { id = null, method } = body
      const mcp = { ...call, session: sessionOf(call.request) }
      if (method === undefined) {
        await takeAnswer(mcp, body)
        return accepted()
      }
      if (id === null) {
        if (method === 'notifications/cancelled') await cancelCall(mcp, body.params ?? {})
        return accepted()
      }
      switch (method) {
        case 'initialize':
          return initialize(agent.definition, id, body.params ?? {})
        case 'ping':
          return rpcResult(id, {})
        case 'tools/list':
          return rpcResult(id, { tools: serverTools(agent.definition) })
        case 'tools/call':
          return callTool(mcp, { id, params: body.params ?? {} })
        default:
          return rpcError(id, RpcCode.MethodNotFound, `There is no method ${method.slice(0, 100)}.`)
      }
    },
  }),
  operation('resumeMcp', {
    tag: 'mcp',
    summary: 'The rest of the stream of an MCP request, for a client that lost its connection.',
    scope: 'threads:write',
    answers: [stream('What follows the event that `last-event-id` names.')],
    errors: ['AGENT_NOT_FOUND', 'THREAD_NOT_FOUND', 'METHOD_NOT_ALLOWED', 'STREAM_LIMIT'],
    async run(call) {
      const { runtime, principal, request, params } = call
      runtime.registry.agent(params.agent)
      const session = sessionOf(request)
      const last = request.headers.get('last-event-id')
      // The server never speaks first, so there is no stream without a request (MCP 2025-11-25, Streamable
      // HTTP, "Listening for Messages from the Server").
      if (last === null)
        throw new HttpError('There are no messages of the server outside of requests.', {
          code: 'METHOD_NOT_ALLOWED',
          hint: 'Send requests with POST. GET needs the `last-event-id` of a stream that broke off.',
          headers: { allow: 'POST' },
        })
      const position = parseEventId(last)
      if (!position) throw invalid('The header last-event-id is not the id of an event.')
      await findThread(runtime, principal, position.threadId)
      return eventResponse(call, (signal) => answerCall({ ...call, session }, position, signal))
    },
  }),
]

function accepted(): Response {
  return new Response(null, { status: 202 })
}

function invalid(message: string, hint?: string): HttpError {
  return new HttpError(message, { code: 'INPUT_INVALID', hint })
}

function initialize(
  { name, title, description }: { name: string; title?: string; description?: string },
  id: RpcId,
  { protocolVersion, capabilities }: JsonObject,
): Response {
  const version = VERSIONS.find((one) => one === protocolVersion) ?? VERSIONS[0]!
  const elicitation = isPlainObject(capabilities) ? capabilities['elicitation'] : undefined
  // A client that declares only `url` cannot show a form (MCP 2025-11-25, Elicitation, "Capabilities").
  const asks =
    isPlainObject(elicitation) && (!('url' in elicitation) || 'form' in elicitation) ? 'form' : ''
  return rpcResult(
    id,
    {
      protocolVersion: version,
      capabilities: { tools: {} },
      serverInfo: withoutUndefined({ name, title, version: '0.1.0' }),
      ...withoutUndefined({ instructions: description }),
    },
    { 'mcp-session-id': threadPartId('mcp', uuidV7(), `${version} ${asks}`) },
  )
}

/** Reads the headers of MCP. A client without a session cannot be asked anything. */
function sessionOf({ headers }: Request): McpSession {
  const version = headers.get('mcp-protocol-version')
  if (version !== null && !VERSIONS.includes(version))
    throw invalid(
      `The version ${JSON.stringify(version.slice(0, 40))} of MCP is not spoken.`,
      `Versions: ${VERSIONS.join(', ')}.`,
    )
  const id = headers.get('mcp-session-id')
  if (id === null) return { hasForms: false, hasEmptyEvents: version === VERSIONS[0] }
  const [spoken = '', asks] = parseThreadPartId('mcp', id)?.part.split(' ') ?? []
  if (!VERSIONS.includes(spoken))
    throw new HttpError('There is no such MCP session.', {
      code: 'ROUTE_NOT_FOUND',
      hint: 'Initialize a new one.',
    })
  return { id, hasForms: asks === 'form', hasEmptyEvents: spoken === VERSIONS[0] }
}

/** Records a person's answer to a question (`elicitation/create`). The id of the question names the call. */
async function takeAnswer(
  call: McpCall,
  { id, result }: { readonly id?: RpcId | undefined; readonly result?: unknown },
): Promise<void> {
  const place = typeof id === 'string' ? parseThreadPartId('ask', id) : undefined
  if (!place || typeof id !== 'string') throw invalid('No question of this server has this id.')
  const { runtime, principal, services } = call
  const parts = tryParseJson(place.part)
  const [kind, interruptId, digest] = Array.isArray(parts) ? (parts as readonly JsonValue[]) : []
  const thread = await findThread(runtime, principal, place.threadId)
  const clientAnswer = isPlainObject(result) ? answerOf(kind, result) : 'none'
  // The person closed the form, or the client could not show it: the call continues to wait.
  if (clientAnswer === 'none') return mcpCallsOf(services).closeQuestion(accountOf(principal), id)
  if (!clientAnswer || typeof interruptId !== 'string')
    throw new HttpError('The answer does not fit the form of the question.', {
      code: 'ANSWER_INVALID',
      hint: 'Send the fields of `requestedSchema`.',
    })
  const shownDigest = typeof digest === 'string' ? { digest } : {}
  await giveAnswer(call, thread, { threadId: thread.id, interruptId, ...shownDigest }, clientAnswer)
}

function answerOf(
  kind: JsonValue | undefined,
  { action, content }: Record<string, unknown>,
): OutsideAnswer | 'none' | undefined {
  if (action === 'cancel') return 'none'
  const isDeclined = action === 'decline'
  if (!isDeclined && (action !== 'accept' || !isPlainObject(content))) return undefined
  const fields = (isDeclined ? {} : content) as JsonObject // the body is JSON
  const { decision, reason, answer, found } = fields
  const why = typeof reason === 'string' && reason !== '' ? { reason: reason.slice(0, 10_000) } : {}
  switch (kind) {
    case 'approval':
      if (isDeclined || decision === 'deny')
        return { type: 'deny', reason: 'The person declined.', ...why }
      return decision === 'approve' ? { type: 'approve', ...why } : undefined
    case 'in_doubt':
      return isDeclined ? 'none' : { type: 'settle', found }
    case 'input':
      if (isDeclined) return { type: 'error', message: 'The person declined to answer.' }
      return typeof answer === 'string' ? { type: 'result', value: answer } : undefined
    default:
      return undefined
  }
}

/**
 * Stops the work of a request that the client has cancelled. A connection that breaks off cancels nothing
 * (MCP 2025-11-25, Streamable HTTP, "Sending Messages to the Server").
 */
async function cancelCall(
  { runtime, principal, services, session: { id } }: McpCall,
  { requestId }: JsonObject,
): Promise<void> {
  if (id === undefined || (typeof requestId !== 'string' && typeof requestId !== 'number')) return
  const threadId = mcpCallsOf(services).cancel(accountOf(principal), id, requestId)
  if (threadId !== undefined) await runtime.threads.stop(threadId, { by: actorOf(principal) })
}
