import { SkeinError, type JsonValue } from '@skein/base'
import type { Message, ToolResult, UserMessage } from '@skein/ai'
import type { GatewayRequest } from '@skein/ai/gateway'
import { CLIENT_TOOLS } from '../../calls/tools.ts'
import type { Runtime } from '../../runtime-api.ts'
import type { ThreadHead } from '../../store/store.ts'
import { findThread } from '../access.ts'
import { findChat } from '../chat/find-chat.ts'
import type { Principal } from '../principal.ts'
import { conversationNotFound, refusal } from './compat-error.ts'
import { parseCompatId } from './compat-id.ts'
import { injectHistory, spokenResult } from './inject-history.ts'

/** The tag of threads that live for one answer. */
export const EPHEMERAL = 'ephemeral'

/** The thread that answers a request, and from where. */
export interface Asked {
  readonly thread: ThreadHead
  /** Number of the event before the answer. */
  readonly after: number
  readonly queueId?: string
  /** A durable one can be gone on with by name. */
  readonly isDurable: boolean
}

interface Asking {
  readonly runtime: Runtime
  readonly principal: Principal
  readonly agent: string
  readonly request: GatewayRequest
}

/**
 * Puts the question of a request to a thread: the one that it names, the one whose call it answers, or
 * a new one made from the history that it sends.
 */
export async function askThread(asking: Asking): Promise<Asked> {
  const { request } = asking
  const start = request.messages.findLastIndex(({ type }) => type === 'assistant') + 1
  const tail = request.messages.slice(start)
  const results = tail.flatMap((message) => (message.type === 'tool_result' ? message.results : []))
  const spoken = tail.filter((message) => message.type === 'user')
  const named = await namedThread(asking)
  const waiting = named ?? (await waitingThread(asking, results))
  if (waiting) {
    await setTools(asking, waiting)
    return goOn(asking, waiting, { results, spoken, isDurable: named !== undefined })
  }
  return begin(asking, start)
}

/** `conversation`, or `previous_response_id`; only Responses have them. */
async function namedThread(asking: Asking): Promise<ThreadHead | undefined> {
  const { runtime, principal, request } = asking
  if (request.wire !== 'openai-responses') return undefined
  const { conversation, previous_response_id: previous } = request.params
  const name =
    typeof conversation === 'object' && conversation !== null
      ? (conversation as { id?: unknown }).id
      : conversation
  if (typeof name === 'string') {
    const threadId = parseCompatId('conv', name)?.threadId
    return threadId === undefined
      ? findChat(runtime, principal, name)
      : findThread(runtime, principal, threadId)
  }
  if (previous === undefined || previous === null) return undefined
  const response = typeof previous === 'string' ? parseCompatId('resp', previous) : undefined
  if (!response) throw conversationNotFound()
  const thread = await findThread(runtime, principal, response.threadId)
  return branchAt(runtime, principal, thread, response.part)
}

/** Going on from an answer that is not the last one is done in a copy, as the vendor does it. */
async function branchAt(
  runtime: Runtime,
  { user }: Principal,
  thread: ThreadHead,
  queueId: string,
): Promise<ThreadHead> {
  const messages = await runtime.threads.messages(thread.id, { limit: 100_000 })
  const from = messages.findIndex(({ id }) => id === queueId)
  const next = messages.findIndex(({ message }, at) => at > from && message.type === 'user')
  if (from < 0 || next < 0) return thread
  const upTo = messages[next - 1]!.id
  return runtime.threads.fork(thread.id, { upTo, ...(user !== undefined && { owner: user }) })
}

/** The thread that waits for the results. One that no longer does is begun anew from what the client sends. */
async function waitingThread(
  { runtime, principal }: Asking,
  results: readonly ToolResult[],
): Promise<ThreadHead | undefined> {
  const calls = results.map(({ toolCallId }) => parseCompatId('call', toolCallId))
  const threadId = calls[0]?.threadId
  if (threadId === undefined) return undefined
  const thread = await findIfThere(runtime, principal, threadId)
  if (!thread) return undefined
  const { tenant, rootId } = thread
  const waiting = await runtime.inbox.list({ tenant, rootId })
  const isOpen = (part: string | undefined): boolean =>
    waiting.some((item) => item.threadId === threadId && item.interruptId === part)
  return calls.every((call) => isOpen(call?.part)) ? thread : undefined
}

async function findIfThere(
  runtime: Runtime,
  principal: Principal,
  threadId: string,
): Promise<ThreadHead | undefined> {
  try {
    return await findThread(runtime, principal, threadId)
  } catch (error) {
    if (SkeinError.is(error) && error.code === 'THREAD_NOT_FOUND') return undefined
    throw error
  }
}

async function goOn(
  { runtime, principal }: Asking,
  thread: ThreadHead,
  {
    results,
    spoken,
    isDurable,
  }: {
    readonly results: readonly ToolResult[]
    readonly spoken: readonly UserMessage[]
    readonly isDurable: boolean
  },
): Promise<Asked> {
  const { id } = thread
  const after = thread.seq
  for (const { toolCallId, result, isError } of results) {
    const call = parseCompatId('call', toolCallId)
    if (call?.threadId !== id)
      throw refusal(`No call of this conversation has the id ${toolCallId.slice(0, 200)}.`)
    const item = { threadId: id, interruptId: call.part, ...by(principal) }
    const value = result as JsonValue // decoded from JSON
    await runtime.inbox.answer(
      item,
      isError ? { type: 'error', message: spokenResult(value) } : { type: 'result', value },
    )
  }
  const queueId = await sendAll(runtime, principal, id, spoken)
  if (queueId === undefined && results.length === 0)
    throw refusal('There is nothing to answer: send a message or the result of a call.')
  // Results go on at once; words wait until they are taken.
  const awaited = results.length === 0 && queueId !== undefined ? { queueId } : {}
  return { thread, after, isDurable: isDurable || !thread.tags.includes(EPHEMERAL), ...awaited }
}

async function begin(asking: Asking, start: number): Promise<Asked> {
  const { runtime, principal, agent, request } = asking
  const { messages, system, wire, params } = request
  const isDurable = wire === 'openai-responses' && params['store'] !== false
  const last = messages.at(-1)
  if (!last || last.type === 'assistant' || start > messages.length - 1)
    throw refusal('The conversation must end with a message of the user or the result of a call.')
  const { tenant, user } = principal
  const created = await runtime.threads.create({
    agent,
    tenant,
    ...(user !== undefined && { owner: user }),
    tags: [isDurable ? 'responses' : EPHEMERAL],
    values: { [CLIENT_TOOLS]: declaredTools(asking) },
  })
  await injectHistory(runtime, created.id, { system, messages: messages.slice(0, -1) })
  const thread = await runtime.threads.get(created.id)
  const question = last.type === 'user' ? last : spokenResults(last)
  const queueId = await sendAll(runtime, principal, thread.id, [question])
  return { thread, after: thread.seq, isDurable, ...(queueId !== undefined && { queueId }) }
}

function spokenResults(message: Exclude<Message, UserMessage>): {
  readonly content: UserMessage['content']
} {
  const results = message.type === 'tool_result' ? message.results : []
  const text = results.map(({ result }) => spokenResult(result)).join('\n')
  return { content: [{ type: 'text', text }] }
}

async function sendAll(
  runtime: Runtime,
  principal: Principal,
  threadId: string,
  spoken: readonly Pick<UserMessage, 'content'>[],
): Promise<string | undefined> {
  let queueId: string | undefined
  for (const { content } of spoken)
    ({ queueId } = await runtime.threads.send(threadId, {
      content,
      ...(principal.user !== undefined && { userId: principal.user }),
    }))
  return queueId
}

async function setTools(asking: Asking, { id }: ThreadHead): Promise<void> {
  const { runtime, request } = asking
  if (request.tools.length === 0) return
  await runtime.threads.values.set(id, CLIENT_TOOLS, declaredTools(asking))
}

/** The client's tools; one that the agent has itself is refused rather than confused. */
function declaredTools({ runtime, agent, request }: Asking): JsonValue {
  const own = new Set(runtime.registry.agent(agent).a.prompt.tools.map(({ name }) => name))
  return request.tools.map(({ name, description, parameters }) => {
    if (own.has(name)) throw refusal(`The agent has a tool "${name}" of its own.`)
    return { name, description, parameters: parameters as JsonValue }
  })
}

function by(principal: Principal): { readonly by?: string } {
  return principal.user === undefined ? {} : { by: principal.user }
}
