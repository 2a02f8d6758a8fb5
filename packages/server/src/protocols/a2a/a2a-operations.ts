import type { ThreadIdentity } from '../../operations/thread-identity.ts'
import { isPlainObject, type JsonObject, type JsonValue } from '@skein/base'
import type {} from '@skein/runtime'
import {
  operation,
  raw,
  stream,
  type Call,
  type OperationRoute,
} from '../../operations/operation.ts'
import { accountOf, actorOf, findThread, ifFound } from '../../operations/principal.ts'
import { object } from '@skein/base/shape'
import { openChat } from '../chat/admit-chat.ts'
import { toUserContent } from '../chat/chat-body.ts'
import { giveAnswer, type AnsweredCall, type OutsideAnswer } from '../json-rpc/waiting-call.ts'
import { RPC_BODY, RpcCode, rpcError, rpcResult, type RpcId } from '../json-rpc/json-rpc.ts'
import { eventResponse } from '../../streams/event-stream.ts'
import { contextId, parseTaskId, type TaskStart } from './task-id.ts'
import { findTask, taskEvents, type FoundTask } from './task.ts'

/** The error codes of A2A 1.0 that are used. */
const A2aCode = {
  TaskNotFound: -32001,
  TaskNotCancelable: -32002,
  PushNotificationNotSupported: -32003,
  UnsupportedOperation: -32004,
  ExtendedCardNotConfigured: -32007,
  VersionNotSupported: -32009,
}

type Method = 'send' | 'stream' | 'get' | 'cancel' | 'subscribe'

/** The methods of A2A 1.0 and, with a slash, of A2A 0.3. */
const METHODS: Readonly<Record<string, Method>> = {
  SendMessage: 'send',
  SendStreamingMessage: 'stream',
  GetTask: 'get',
  CancelTask: 'cancel',
  SubscribeToTask: 'subscribe',
  'message/send': 'send',
  'message/stream': 'stream',
  'tasks/get': 'get',
  'tasks/cancel': 'cancel',
  'tasks/resubscribe': 'subscribe',
}

/** The operation that serves an agent to clients of the A2A protocol, by JSON-RPC. */
export const a2aOperations: readonly OperationRoute[] = [
  operation('a2a', {
    tag: 'a2a',
    summary: 'An agent for clients of A2A: sends messages, and reads, follows and cancels tasks.',
    scope: 'threads:write',
    probe: {
      body: {
        jsonrpc: '2.0',
        id: 1,
        method: 'SendMessage',
        params: {
          message: { messageId: 'm1', role: 'ROLE_USER', parts: [{ text: 'Hello' }] },
          configuration: { returnImmediately: true },
        },
      },
    },
    body: { json: RPC_BODY, isLarge: true },
    answers: [
      raw('The response to a JSON-RPC request.', 'application/json', object),
      stream('For streaming methods: the task, its changes, and its last status.'),
    ],
    errors: ['AGENT_NOT_FOUND', 'STREAM_LIMIT'],
    async run(call) {
      const { runtime, params, body, request } = call
      runtime.registry.agent(params.agent) // throws when there is no such agent
      const { id = null, method = '' } = body
      try {
        const version = request.headers.get('a2a-version') ?? ''
        if (!/^(1(\.\d+)?|0\.3)?$/.test(version))
          throw new A2aError(A2aCode.VersionNotSupported, 'The versions 1.0 and 0.3 are spoken.')
        const kind = Object.hasOwn(METHODS, method) ? METHODS[method]! : unknownMethod(method)
        const methodParams = body.params ?? {}
        return await answer({ ...call, isOld: method.includes('/'), id, given: methodParams }, kind)
      } catch (error) {
        return refusal(call, id, error)
      }
    },
  }),
]

/** An error of the A2A protocol. */
class A2aError extends Error {
  readonly code: number

  constructor(code: number, message: string) {
    super(message)
    this.code = code
  }
}

function unknownMethod(method: string): never {
  if (/pushnotificationconfig/i.test(method))
    throw new A2aError(
      A2aCode.PushNotificationNotSupported,
      'Tasks send no push notifications. Subscribe to the task, or use webhooks of the server.',
    )
  if (method.toLowerCase().includes('extended'))
    throw new A2aError(A2aCode.ExtendedCardNotConfigured, 'There is only one card of this agent.')
  if (method === 'ListTasks')
    throw new A2aError(A2aCode.UnsupportedOperation, 'Tasks cannot be listed.')
  throw new A2aError(RpcCode.MethodNotFound, `There is no method ${method.slice(0, 100)}.`)
}

function refusal({ services }: Pick<Call, 'services'>, id: RpcId, error: unknown): Response {
  if (error instanceof A2aError) return rpcError(id, error.code, error.message)
  const clientError = services.clientError(error)
  // A missing scope and too many open streams are answered with an HTTP status, as on every other route.
  if (!clientError || clientError.code === 'SCOPE_MISSING' || clientError.code === 'STREAM_LIMIT')
    throw error
  const { code, message, hint } = clientError
  const reason = [
    { '@type': 'type.googleapis.com/google.rpc.ErrorInfo', reason: code, domain: 'skein' },
  ]
  const rpcCode = code === 'THREAD_NOT_FOUND' ? A2aCode.TaskNotFound : RpcCode.InvalidParams
  return rpcError(id, rpcCode, hint === undefined ? message : `${message} ${hint}`, reason)
}

interface A2aCall extends Pick<
  Call,
  'request' | 'runtime' | 'principal' | 'services' | 'connection'
> {
  readonly params: { readonly agent: string }
  /** Whether the client speaks A2A 0.3. */
  readonly isOld: boolean
  readonly id: RpcId
  /** The parameters of the method. */
  readonly given: JsonObject
}

async function answer(call: A2aCall, kind: Method): Promise<Response> {
  const { runtime, principal, services, given } = call
  switch (kind) {
    case 'send':
    case 'stream': {
      // The number of open streams is checked first, so that a request that cannot be answered changes nothing.
      services.streams.checkRoom(accountOf(principal))
      const exchange = await sendMessage(call)
      if (kind === 'stream') return streamTask(call, exchange)
      const { configuration } = given
      const { blocking, returnImmediately } = isPlainObject(configuration) ? configuration : {}
      if (blocking !== false && returnImmediately !== true)
        await untilResting(call, exchange.thread)
      return taskResponse(call, exchange)
    }
    case 'get':
      return taskResponse(call, await namedTask(call))
    case 'subscribe': {
      const target = await namedTask(call)
      if ((await found(call, target)).isOver)
        throw new A2aError(A2aCode.UnsupportedOperation, 'The task is over; read it instead.')
      return streamTask(call, target)
    }
    case 'cancel': {
      const target = await namedTask(call)
      if ((await found(call, target)).isOver)
        throw new A2aError(A2aCode.TaskNotCancelable, 'The task is over.')
      const { thread, start } = target
      if (!(await runtime.threads.unsend(thread.id, start.queueId))) {
        await runtime.threads.stop(thread.id, { by: actorOf(principal) })
        await untilResting(call, thread)
      }
      return taskResponse(call, target)
    }
  }
}

/** A task with its thread, which the client may see. */
interface NamedTask {
  readonly thread: ThreadIdentity
  readonly start: TaskStart
}

async function namedTask(
  { runtime, principal, given }: A2aCall,
  id: JsonValue | undefined = given['id'],
): Promise<NamedTask> {
  const start = parseTaskId(id)
  const thread = start && (await ifFound(findThread(runtime, principal, start.threadId)))
  if (!start || !thread) throw taskNotFound()
  return { thread, start }
}

function taskNotFound(): A2aError {
  return new A2aError(A2aCode.TaskNotFound, 'There is no such task.')
}

async function found(
  { runtime, services, given }: A2aCall,
  { thread, start }: NamedTask,
): Promise<FoundTask> {
  const { configuration, historyLength: own } = given
  const length = isPlainObject(configuration) ? configuration['historyLength'] : own
  const historyLength = typeof length === 'number' && length >= 0 ? length : undefined
  const task = await findTask(runtime, thread, start, { now: services.clock.now(), historyLength })
  if (!task) throw taskNotFound()
  return task
}

async function taskResponse(call: A2aCall, named: NamedTask): Promise<Response> {
  const { id, isOld, given } = call
  const { task } = await found(call, named)
  if (isOld) return rpcResult(id, toOldVersion({ task }))
  return rpcResult(id, 'message' in given ? { task } : task)
}

function streamTask(call: A2aCall, { thread, start }: NamedTask): Response {
  const { runtime, services, id, isOld } = call
  const now = (): number => services.clock.now()
  return eventResponse(call, async function* (signal) {
    for await (const event of taskEvents(runtime, thread, start, { signal, now })) {
      const result = isOld ? toOldVersion(event) : event
      yield `data: ${JSON.stringify({ jsonrpc: '2.0', id, result })}\n\n`
    }
  })
}

/**
 * Waits until the thread is at rest or waits for a person. The wait counts as an open stream, because it holds the
 * connection; when the server ends all streams, the wait ends too, and the task is returned as it is then.
 */
async function untilResting(
  { request, runtime, principal, services }: A2aCall,
  { id }: ThreadIdentity,
): Promise<void> {
  const ending = new AbortController()
  const remove = services.streams.add({ end: () => ending.abort() }, accountOf(principal))
  const signal = AbortSignal.any([request.signal, ending.signal])
  try {
    await runtime.threads.settled(id, { signal })
  } catch (error) {
    if (!signal.aborted) throw error
  } finally {
    remove()
  }
}

/** Gives the message of a request to a new task, or to the task that the message names. */
async function sendMessage(call: A2aCall): Promise<NamedTask> {
  const { runtime, principal, params, given } = call
  const message = isPlainObject(given['message']) ? (given['message'] as JsonObject) : {}
  const context = idIn(message, 'contextId')
  const taskId = idIn(message, 'taskId', MAX_TASK_ID)
  const messageId = idIn(message, 'messageId') // the same message is taken once, also when it is sent again
  const parts = Array.isArray(message['parts']) ? (message['parts'] as readonly JsonValue[]) : []
  if (taskId !== undefined) {
    const target = await namedTask(call, taskId)
    if (context !== undefined && context !== contextId(target.thread))
      throw new A2aError(RpcCode.InvalidParams, 'The task is of another context.')
    await continueTask(call, target, { parts, messageId })
    return target
  }
  const content = toUserContent(parts.map(pagePart), 'message') // throws before anything is made
  const { tenant, user } = principal
  const thread =
    context !== undefined
      ? await openChat(runtime, principal, { chatId: context, agent: params.agent })
      : await runtime.threads.create({ agent: params.agent, tenant, owner: user, tags: ['a2a'] })
  const receipt = await runtime.threads.send(thread.id, { content, userId: user, messageId })
  return { thread, start: { threadId: thread.id, queueId: receipt.queueId, seq: receipt.seq } }
}

/** The longest id that a client may choose, in characters. Ids of tasks contain such an id, so they are longer. */
const MAX_ID = 256
const MAX_TASK_ID = 4 * MAX_ID

/** Reads an id of a message; undefined if the message has none. */
function idIn(message: JsonObject, name: string, maxLength = MAX_ID): string | undefined {
  const id = message[name] ?? ''
  if (typeof id !== 'string' || id.length > maxLength)
    throw new A2aError(
      RpcCode.InvalidParams,
      `${name} must be a text of at most ${maxLength} characters.`,
    )
  return id === '' ? undefined : id
}

/** Answers what a task waits for, or sends a message to a task that is at work. */
async function continueTask(
  call: A2aCall,
  named: NamedTask,
  { parts, messageId }: { readonly parts: readonly JsonValue[]; readonly messageId?: string },
): Promise<void> {
  const { runtime, principal } = call
  const { thread } = named
  const { isOver, waiting } = await found(call, named)
  if (isOver)
    throw new A2aError(
      A2aCode.UnsupportedOperation,
      'The task is over. Send the message without the id of the task to begin another one.',
    )
  const decisions = parts.flatMap((part) => decisionsIn(part, waiting))
  for (const { about, given } of decisions) await giveAnswer(call, thread, about, given)
  if (decisions.length > 0) return
  const content = toUserContent(parts.map(pagePart), 'message')
  const [only, ...others] = waiting
  if (only?.kind === 'input' && others.length === 0) {
    const value = content.map((block) => (block.type === 'text' ? block.text : '')).join('')
    await giveAnswer(call, thread, only, { type: 'result', value })
    return
  }
  if (only)
    throw new A2aError(
      RpcCode.InvalidParams,
      'The task waits for a decision. Send a data part with the interruptId and, for an approval, decision (approve or deny) and digest.',
    )
  await runtime.threads.send(thread.id, { content, userId: principal.user, messageId })
}

/** Reads the answers to waiting calls in a data part. */
function decisionsIn(
  part: JsonValue,
  waiting: FoundTask['waiting'],
): readonly { readonly about: AnsweredCall; readonly given: OutsideAnswer }[] {
  const data = isPlainObject(part) ? part['data'] : undefined
  if (!isPlainObject(data) || typeof data['interruptId'] !== 'string') return []
  const { interruptId, digest, decision, reason, result, error, found } = data as JsonObject
  const item = waiting.find((one) => one.interruptId === interruptId)
  if (!item) throw new A2aError(RpcCode.InvalidParams, 'The task does not wait for this answer.')
  const seenDigest = typeof digest === 'string' ? { digest } : {}
  const about = { threadId: item.threadId, interruptId: item.interruptId, ...seenDigest }
  const why = typeof reason === 'string' && reason !== '' ? { reason: reason.slice(0, 10_000) } : {}
  if (decision === 'approve') {
    const newArguments = (data as JsonObject)['with']
    if (newArguments !== undefined && !isPlainObject(newArguments))
      throw new A2aError(
        RpcCode.InvalidParams,
        'with must be an object: all arguments of the call.',
      )
    const args = newArguments === undefined ? {} : { with: newArguments as JsonObject }
    return [{ about, given: { type: 'approve', ...why, ...args } }]
  }
  if (decision === 'deny')
    return [{ about, given: { type: 'deny', reason: 'The caller declined.', ...why } }]
  if (found !== undefined) return [{ about, given: { type: 'settle', found } }]
  if (typeof error === 'string') return [{ about, given: { type: 'error', message: error } }]
  if (result !== undefined) return [{ about, given: { type: 'result', value: result } }]
  throw new A2aError(
    RpcCode.InvalidParams,
    'The answer needs decision (approve or deny), found, result or error.',
  )
}

/** Converts a message part of A2A 1.0 or 0.3 to the form of chat pages, whose parser then reads it. */
function pagePart(part: JsonValue): JsonObject {
  if (!isPlainObject(part)) throw unreadable()
  const { text, data, raw: bytes, url, mediaType, filename, file } = part as JsonObject
  if (typeof text === 'string') return { type: 'text', text }
  if (data !== undefined) return { type: 'text', text: JSON.stringify(data) }
  const old = isPlainObject(file) ? (file as JsonObject) : {}
  const type = mediaType ?? old['mimeType'] ?? 'application/octet-stream'
  const base64 = bytes ?? old['bytes']
  const isData = typeof base64 === 'string' && typeof type === 'string'
  const address = isData ? `data:${type};base64,${base64}` : (url ?? old['uri'])
  const name = filename ?? old['name'] ?? ''
  if (address === undefined) throw unreadable()
  return { type: 'file', url: address, mediaType: type, filename: name }
}

function unreadable(): A2aError {
  return new A2aError(RpcCode.InvalidParams, 'A part has neither text, data, raw nor url.')
}

/** Converts a value of A2A 1.0 (`task`, `statusUpdate` or `artifactUpdate` in an object) to A2A 0.3. */
export function toOldVersion(value: JsonObject): JsonObject {
  const { task, statusUpdate, artifactUpdate } = value
  if (task) return { kind: 'task', ...(oldForm(task) as JsonObject) }
  if (artifactUpdate) return { kind: 'artifact-update', ...(oldForm(artifactUpdate) as JsonObject) }
  const update = oldForm(statusUpdate ?? {}) as JsonObject
  const { state } = update['status'] as JsonObject
  const final = state !== 'working' && state !== 'submitted'
  return { kind: 'status-update', ...update, final }
}

/** Converts the parts, messages and states in a value of A2A 1.0, as this file makes it, to A2A 0.3. */
function oldForm(value: JsonValue, name = ''): JsonValue {
  if (Array.isArray(value)) return (value as readonly JsonValue[]).map((one) => oldForm(one, name))
  if (typeof value === 'string') {
    if (name === 'state') return value.replace('TASK_STATE_', '').toLowerCase().replace('_', '-')
    return name === 'role' ? value.replace('ROLE_', '').toLowerCase() : value
  }
  if (typeof value !== 'object' || value === null || name === 'data') return value
  const fields: Record<string, JsonValue> = {}
  if (name === 'parts') fields['kind'] = 'text' in value ? 'text' : 'data'
  if (name === 'message' || name === 'history') fields['kind'] = 'message'
  for (const [key, one] of Object.entries(value)) fields[key] = oldForm(one as JsonValue, key)
  return fields
}
