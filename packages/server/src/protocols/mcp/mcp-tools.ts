import type { ThreadIdentity } from '../../operations/thread-identity.ts'
import { isPlainObject, type JsonObject, type JsonSchema } from '@skein/base'
import type {} from '@skein/runtime'
import { HttpError } from '../../operations/http-error.ts'
import { toSendMessage } from '../../operations/messages.ts'
import { accountOf, findThread } from '../../operations/principal.ts'
import { checkSchema, label, shape } from '@skein/base/shape'
import { restingResult } from '../json-rpc/resting-result.ts'
import { RpcCode, rpcError, rpcResult, type RpcId } from '../json-rpc/json-rpc.ts'
import { eventResponse } from '../../streams/event-stream.ts'
import { answerCall, textBlock, tokenOf, toolResult, type McpCall } from './mcp-call.ts'

const message = { ...label(1_000_000), description: 'What you ask or tell the agent.' }
const threadId = { ...label(200), description: 'The `threadId` of an earlier result.' }

const INPUTS = {
  ask: shape({ message }),
  continue: shape({ threadId, 'message?': message }),
  status: shape({ threadId }),
} satisfies Record<string, JsonSchema>

type ToolName = keyof typeof INPUTS

const OUTPUT: JsonObject = {
  type: 'object',
  properties: {
    threadId: { type: 'string', description: 'The conversation, for `continue` and `status`.' },
    status: {
      type: 'string',
      enum: ['completed', 'failed', 'stopped', 'terminated', 'waiting', 'working'],
    },
    text: { type: 'string', description: 'What the agent answered.' },
    data: { description: 'The answer as JSON, if the agent has a structured answer.' },
    waiting: {
      type: 'array',
      items: { type: 'object' },
      description: 'Calls that wait for a person.',
    },
    hint: { type: 'string', description: 'What can be done about a failure.' },
  },
  required: ['threadId', 'status', 'text', 'waiting'],
}

/** The tools of an agent's MCP server. */
export function serverTools({
  name,
  title,
  description,
}: {
  readonly name: string
  readonly title?: string
  readonly description?: string
}): readonly JsonObject[] {
  const who = title ?? name
  const about = description === undefined ? '' : ` ${description}`
  const tool = (id: ToolName, text: string, isReading: boolean): JsonObject => ({
    name: id,
    description: text,
    inputSchema: INPUTS[id] as JsonObject, // shapes are JSON
    outputSchema: OUTPUT,
    annotations: { readOnlyHint: isReading, openWorldHint: !isReading },
  })
  return [
    tool('ask', `Asks the agent ${who} in a new conversation and waits.${about}`, false),
    tool(
      'continue',
      `Sends a message to a conversation with ${who} and waits. Without a message it only waits.`,
      false,
    ),
    tool('status', `Says how a conversation with ${who} stands, and what it waits for.`, true),
  ]
}

/**
 * Answers `tools/call`. An error that the caller can correct is sent as the result, so that its model reads
 * it.
 */
export async function callTool(
  call: McpCall & { readonly params: { readonly agent: string } },
  { id, params }: { readonly id: RpcId; readonly params: JsonObject },
): Promise<Response> {
  const { name, arguments: given = {}, _meta: meta } = params
  if (typeof name !== 'string' || !Object.hasOwn(INPUTS, name))
    return rpcError(id, RpcCode.InvalidParams, 'There is no such tool.')
  const tool = name as ToolName
  const [problem] = checkSchema(given, INPUTS[tool], { field: 'arguments', named: {} })
  if (problem) return rpcResult(id, failure(`${problem.field} ${problem.message}.`))
  const args = given as { readonly threadId?: string; readonly message?: string } // checked above
  try {
    if (tool === 'status') return rpcResult(id, await statusOf(call, args.threadId ?? ''))
    const thread = await sendTo(call, args)
    const token = isPlainObject(meta) ? meta['progressToken'] : undefined
    const position = { threadId: thread.id, id, ...tokenOf(token), asked: [] }
    return eventResponse(call, (signal) => answerCall(call, position, signal))
  } catch (error) {
    const clientError = call.services.clientError(error)
    if (
      !clientError ||
      clientError.code === 'STREAM_LIMIT' ||
      clientError.code === 'MEDIA_TYPE_UNSUPPORTED'
    )
      throw error
    return rpcResult(id, failure([clientError.message, clientError.hint ?? ''].join(' ').trim()))
  }
}

/** Sends the message to the thread that the arguments name, or to a new one. */
async function sendTo(
  call: McpCall & { readonly params: { readonly agent: string } },
  args: { readonly threadId?: string; readonly message?: string },
): Promise<ThreadIdentity> {
  const { runtime, principal, services, request, params } = call
  if (!/text\/event-stream|\*\/\*/.test(request.headers.get('accept') ?? ''))
    throw new HttpError('The answer to this request is a stream.', {
      code: 'MEDIA_TYPE_UNSUPPORTED',
      hint: 'Send `accept: application/json, text/event-stream`.',
    })
  // The number of open streams is checked first, so that a request that cannot be answered changes nothing.
  services.streams.checkRoom(accountOf(principal))
  const { tenant, user: owner } = principal
  const thread =
    args.threadId === undefined
      ? await runtime.threads.create({ agent: params.agent, tenant, owner, tags: ['mcp'] })
      : await findThread(runtime, principal, args.threadId)
  if (args.message !== undefined)
    await runtime.threads.send(thread.id, toSendMessage(args.message, principal, services))
  return thread
}

async function statusOf(call: McpCall, id: string): Promise<JsonObject> {
  const { runtime, principal, services } = call
  const thread = await findThread(runtime, principal, id)
  const result = await restingResult(runtime, thread, services.clock.now())
  if (result) return { ...toolResult(runtime, result), isError: false } // to have read it is no error
  const structuredContent = { threadId: thread.id, status: 'working', text: '', waiting: [] }
  return { content: [textBlock('The agent is at work.')], structuredContent }
}

function failure(message: string): JsonObject {
  return { content: [textBlock(message)], isError: true }
}
