import type { ThreadIdentity } from '../../operations/thread-identity.ts'
import type { JsonValue } from '@skein/base'
import { AssistantMessage, type Message, type ToolResult, UserMessage } from '@skein/ai'
import type { GatewayRequest } from '@skein/ai/gateway'
import { CLIENT_TOOLS } from '@skein/runtime/serving'
import type { Runtime } from '@skein/runtime'
import {
  actorOf,
  checkFound,
  checkMayApprove,
  findChat,
  findThread,
  ifFound,
  type Principal,
} from '../../operations/principal.ts'
import { conversationNotFound, compatRefusal } from './refusal.ts'
import { parseThreadPartId } from '../thread-part-id.ts'

/** The tag of threads that are created for only one answer. */
export const EPHEMERAL = 'ephemeral'

/** The thread that answers a request, and where its answer begins. */
interface Asked {
  readonly thread: ThreadIdentity
  /** Number of the event after which the answer begins. */
  readonly after: number
  readonly queueId?: string
  /** Whether later requests can continue the thread by its id. */
  readonly isDurable: boolean
}

interface Asking {
  readonly runtime: Runtime
  readonly principal: Principal
  readonly agent: string
  readonly request: GatewayRequest
}

/**
 * Sends the question of a request to a thread: the thread that the request names, the thread whose call it
 * answers, or a new thread with the history that the request contains.
 */
export async function askThread(asking: Asking): Promise<Asked> {
  const { request } = asking
  const start = request.messages.findLastIndex(({ type }) => type === 'assistant') + 1
  const tail = request.messages.slice(start)
  const results = tail.flatMap((message) => (message.type === 'tool_result' ? message.results : []))
  const spoken = tail.filter((message) => message.type === 'user')
  const thread = await namedThread(asking)
  const waiting = thread ?? (await waitingThread(asking, results))
  if (waiting) {
    if (request.tools.length > 0)
      await asking.runtime.threads.values.set(waiting.id, CLIENT_TOOLS, declaredTools(asking))
    return goOn(asking, waiting, { results, spoken, isDurable: thread !== undefined })
  }
  return begin(asking, start)
}

/**
 * Finds the thread that `conversation` or `previous_response_id` names; only the Responses format has these
 * fields.
 */
async function namedThread(asking: Asking): Promise<ThreadIdentity | undefined> {
  const { runtime, principal, request } = asking
  if (request.wire !== 'openai-responses') return undefined
  const { conversation, previous_response_id: previous } = request.params
  const name =
    typeof conversation === 'object' && conversation !== null
      ? (conversation as { id?: unknown }).id
      : conversation
  if (typeof name === 'string') {
    const threadId = parseThreadPartId('conv', name)?.threadId
    return threadId === undefined
      ? findChat(runtime, principal, name)
      : findThread(runtime, principal, threadId)
  }
  if (previous === undefined || previous === null) return undefined
  const response = typeof previous === 'string' ? parseThreadPartId('resp', previous) : undefined
  if (!response) throw conversationNotFound()
  const thread = await findThread(runtime, principal, response.threadId)
  return branchAt(runtime, principal, thread, response.part)
}

/**
 * Copies the thread up to an earlier answer, so that a client can continue from there, as OpenAI allows.
 */
async function branchAt(
  runtime: Runtime,
  { user }: Principal,
  thread: ThreadIdentity,
  queueId: string,
): Promise<ThreadIdentity> {
  const messages = await runtime.threads.messages(thread.id, { limit: 100_000 })
  const from = messages.findIndex(({ id }) => id === queueId)
  const next = messages.findIndex(({ message }, at) => at > from && message.type === 'user')
  if (from < 0 || next < 0) return thread
  const upTo = messages[next - 1]!.id
  return runtime.threads.fork(thread.id, { upTo, owner: user })
}

/**
 * Finds the thread that waits for these results. When there is none, the caller creates one from the client's
 * history.
 */
async function waitingThread(
  { runtime, principal }: Asking,
  results: readonly ToolResult[],
): Promise<ThreadIdentity | undefined> {
  const calls = results.map(({ toolCallId }) => parseThreadPartId('call', toolCallId))
  const threadId = calls[0]?.threadId
  if (threadId === undefined) return undefined
  const thread = await ifFound(findThread(runtime, principal, threadId))
  if (!thread) return undefined
  const { tenant, rootId } = thread
  const waiting = await runtime.inbox.list({ tenant, rootId })
  const isOpen = (part: string | undefined): boolean =>
    waiting.some((item) => item.threadId === threadId && item.interruptId === part)
  return calls.every((call) => isOpen(call?.part)) ? thread : undefined
}

async function goOn(
  { runtime, principal }: Asking,
  thread: ThreadIdentity,
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
  const { tenant, rootId } = thread
  const waiting = results.length > 0 ? await runtime.inbox.list({ tenant, rootId }) : []
  // All results are checked before the first one is recorded.
  const answers = results.map(({ toolCallId, result, isError }) => {
    const call = parseThreadPartId('call', toolCallId)
    if (call?.threadId !== id)
      throw compatRefusal(`No call of this conversation has the id ${toolCallId.slice(0, 200)}.`)
    const value = result as JsonValue // the result was decoded from JSON
    const item = waiting.find(
      ({ threadId, interruptId }) => threadId === id && interruptId === call.part,
    )
    if (item?.kind !== 'in_doubt')
      return () =>
        runtime.inbox.answer(
          { threadId: id, interruptId: call.part, by: principal.user },
          isError ? { type: 'error', message: spokenResult(value) } : { type: 'result', value },
        )
    checkMayApprove(principal)
    checkFound(item, value)
    const by = actorOf(principal)
    return () => runtime.inbox.settle({ threadId: id, interruptId: item.interruptId, by }, value)
  })
  for (const give of answers) await give()
  const queueId = await sendAll(runtime, principal, id, spoken)
  if (queueId === undefined && results.length === 0)
    throw compatRefusal('There is nothing to answer: send a message or the result of a call.')
  // Results continue a thread immediately. A message is first read from the queue, and the answer begins only then.
  const target = results.length === 0 && queueId !== undefined ? { queueId } : {}
  return { thread, after, isDurable: isDurable || !thread.tags.includes(EPHEMERAL), ...target }
}

async function begin(asking: Asking, start: number): Promise<Asked> {
  const { runtime, principal, agent, request } = asking
  const { messages, system, wire, params } = request
  const isDurable = wire === 'openai-responses' && params['store'] !== false
  const last = messages.at(-1)
  if (!last || last.type === 'assistant' || start > messages.length - 1)
    throw compatRefusal(
      'The conversation must end with a message of the user or the result of a call.',
    )
  const { tenant, user } = principal
  const newThread = await runtime.threads.create({
    agent,
    tenant,
    owner: user,
    tags: [isDurable ? 'responses' : EPHEMERAL],
    values: { [CLIENT_TOOLS]: declaredTools(asking) },
  })
  await injectHistory(runtime, newThread.id, { system, messages: messages.slice(0, -1) })
  const thread = await runtime.threads.head(newThread.id)
  // Results of calls that no thread of this server made are converted to text.
  const text =
    last.type === 'user' ? '' : last.results.map(({ result }) => spokenResult(result)).join('\n')
  const question =
    last.type === 'user' ? last : { content: [{ type: 'text', text } as const] as const }
  const queueId = await sendAll(runtime, principal, thread.id, [question])
  return { thread, after: thread.seq, isDurable, queueId }
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
      userId: principal.user,
    }))
  return queueId
}

/**
 * Returns the client's tools. A name that the agent's own tools use is refused, because calls would be
 * ambiguous.
 */
function declaredTools({ runtime, agent, request }: Asking): JsonValue {
  const own = new Set(runtime.registry.agent(agent).a.prompt.tools.map(({ name }) => name))
  return request.tools.map(({ name, description, parameters }) => {
    if (own.has(name)) throw compatRefusal(`The agent has a tool "${name}" of its own.`)
    return { name, description, parameters: parameters as JsonValue }
  })
}

/**
 * Copies the history that a client sends into a new thread. Calls and results in it were not made by this
 * thread, so they are converted to text.
 */
async function injectHistory(
  runtime: Runtime,
  threadId: string,
  history: { readonly system?: string | undefined; readonly messages: readonly Message[] },
): Promise<void> {
  const { system, messages } = history
  if (system === undefined && messages.length === 0) return
  await runtime.withState(threadId, (state) => {
    if (system !== undefined && system !== '') {
      const content = `Instructions of the client:\n\n${system}`
      state.injectMessage({ content, role: 'user', isSilent: true })
    }
    for (const message of messages) {
      const text = toldMessage(message)
      if (text)
        state.injectMessage({ content: text, role: text.type === 'user' ? 'user' : 'assistant' })
    }
  })
}

function toldMessage(message: Message): UserMessage | AssistantMessage | undefined {
  switch (message.type) {
    case 'user':
      return new UserMessage(message.content)
    case 'assistant': {
      const calls = (message.toolCalls ?? []).map(
        ({ toolName, arguments: args }) => `[I called ${toolName} with ${JSON.stringify(args)}]`,
      )
      const texts = message.content.filter((block) => block.type === 'text')
      const content = [...texts.map(({ text }) => text), ...calls].filter((text) => text !== '')
      return content.length === 0 ? undefined : new AssistantMessage(content.join('\n'))
    }
    case 'tool_result':
      return new UserMessage(message.results.map(({ result }) => spokenResult(result)).join('\n'))
  }
}

/** Returns the result of a call as text. */
function spokenResult(result: unknown): string {
  return typeof result === 'string' ? result : (JSON.stringify(result) ?? '')
}
