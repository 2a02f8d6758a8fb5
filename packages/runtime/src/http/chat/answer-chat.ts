import {
  encodeUIChunk,
  UI_STREAM_DONE,
  UI_STREAM_HEADERS,
  type UIMessageChunk,
} from '@skein/threads/ai-sdk'
import type { Runtime, SendMessage } from '../../runtime-api.ts'
import type { ThreadHead } from '../../store/store.ts'
import {
  accountOf,
  actorOf,
  findThread,
  type Principal,
  seesAllOwners,
} from '../../operations/principal.ts'
import type { Call } from '../../operations/operation.ts'
import { answerStream, type AnswerStreamOptions } from './answer-stream.ts'
import { type ChatBody, historyIsFixed, parseChatBody } from './chat-body.ts'
import { type AnswerPlace, findAnswer } from './find-answer.ts'
import { giveAnswers } from './give-answers.ts'
import { eventStream } from '../stream/event-stream.ts'
import { SkeinError } from '@skein/base'
import { threadNotFound } from '../../operations/http-error.ts'

/** What can be asked of a stream in its address. */
interface ChatQuery {
  readonly hold?: boolean
  readonly children?: boolean
}

/**
 * Takes what a page has to say and streams the answer: new messages of the person, decisions and
 * results of the page's own tools. Everything else in the body is what we told the page ourselves.
 */
export async function answerChat(call: Call): Promise<Response> {
  const { runtime, principal, params } = call
  // Before anything is said: who cannot be answered has said nothing.
  call.services.streams.checkRoom(accountOf(principal))
  const body = parseChatBody(call.body, principal)
  const thread = await openChat(runtime, principal, {
    chatId: body.chatId,
    agent: params['agent']!,
  })
  const place = await findAnswer(runtime, thread.id, thread.seq)
  const messages = await newMessages(runtime, thread, body)
  const count = await giveAnswers(runtime, principal, thread, body.answers)
  // Without a name the page goes on with its last message.
  const messageId = body.continued ?? (body.messages.length === 0 ? body.answered : undefined)
  if (messageId !== undefined) {
    await sendAll(call, thread, messages)
    if (count === 0) return nothingNew(call, messageId)
    return streamAnswer(call, thread, {
      after: place.after,
      continues: { messageId, seq: place.seq },
    })
  }
  if (messages.length > 0) return answerMessages(call, thread, messages, place)
  return body.messages.length > 0 ? repeatAnswer(call, thread, place) : nothingNew(call)
}

/** Streams an answer of a thread. */
export function streamAnswer(
  call: Call,
  thread: ThreadHead,
  options: Pick<AnswerStreamOptions, 'after' | 'queueId' | 'continues'>,
): Response {
  const { children = false } = call.query as ChatQuery // checked by the schema
  const hold = holds(call)
  return chatResponse(call, (signal) =>
    answerStream(call.runtime, thread, { ...options, hold, children, signal }),
  )
}

/** A page may ask for it; it may not ask it away. */
export function holds({ query, services }: Call): boolean {
  return services.holdsGoverned || (query as ChatQuery).hold === true
}

async function answerMessages(
  call: Call,
  thread: ThreadHead,
  messages: readonly SendMessage[],
  place: AnswerPlace,
): Promise<Response> {
  const queueId = await sendAll(call, thread, messages)
  const isAtRest = thread.lifecycle !== 'running' && thread.lifecycle !== 'waiting'
  const after = isAtRest ? place.seq : place.after
  return streamAnswer(call, thread, { after, queueId })
}

/** Queues messages in order; the id of the last one. */
async function sendAll(
  { runtime }: Call,
  thread: ThreadHead,
  messages: readonly SendMessage[],
): Promise<string> {
  let queueId = ''
  for (const message of messages) ({ queueId } = await runtime.threads.send(thread.id, message))
  return queueId
}

/** The page asks again for what it has asked before: it gets the same answer, or the work goes on. */
async function repeatAnswer(call: Call, thread: ThreadHead, place: AnswerPlace): Promise<Response> {
  if (thread.lifecycle === 'failed' || thread.lifecycle === 'stopped')
    await call.runtime.threads.resume(thread.id, { by: actorOf(call.principal) })
  return streamAnswer(call, thread, { after: place.after })
}

/** Nothing to do. `interrupted` keeps a page that sends by itself from doing so without end. */
function nothingNew(call: Call, messageId?: string): Response {
  return chatResponse(call, async function* (): AsyncGenerator<UIMessageChunk> {
    yield { type: 'start', ...(messageId !== undefined && { messageId }) }
    yield { type: 'finish', finishReason: 'interrupted' }
  })
}

/** Those that the thread does not have; one that it has in other words is refused. */
async function newMessages(
  runtime: Runtime,
  { id, seq }: ThreadHead,
  { messages }: ChatBody,
): Promise<ChatBody['messages']> {
  if (messages.length === 0 || seq <= FIRST_EVENTS) return messages
  const known = new Map<string, string>()
  for (const { message } of await runtime.threads.messages(id, { order: 'desc', limit: 1000 }))
    known.set(message.id, message.text)
  return messages.filter(({ messageId, content = [] }) => {
    const stored = known.get(messageId)
    const text = content.map((block) => (block.type === 'text' ? block.text : '')).join('')
    if (stored !== undefined && stored !== text) throw historyIsFixed()
    return stored === undefined
  })
}

/** A thread that has only been made. */
const FIRST_EVENTS = 2

/** Sends chunks as the UI message stream that `useChat` reads. Closing it stops nothing. */
function chatResponse(
  call: Call,
  chunks: (signal: AbortSignal) => AsyncIterable<UIMessageChunk>,
): Response {
  const { request, principal, services } = call
  const response = eventStream({
    events: (signal) => encoded(call, chunks(signal), signal),
    client: accountOf(principal),
    streams: services.streams,
    limits: services.limits,
    timers: services.timers,
    clock: services.clock,
    signal: request.signal,
    expiresAt: principal.expiresAt,
    disconnect: call.disconnect,
    onError: services.report,
  })
  const version = 'x-vercel-ai-ui-message-stream'
  response.headers.set(version, UI_STREAM_HEADERS[version]!)
  return response
}

async function* encoded(
  { services }: Call,
  chunks: AsyncIterable<UIMessageChunk>,
  signal: AbortSignal,
): AsyncGenerator<string, void> {
  try {
    for await (const chunk of chunks) yield encodeUIChunk(chunk)
  } catch (error) {
    if (signal.aborted) return
    services.report(error)
    const errorText = 'Something went wrong on the server.'
    yield encodeUIChunk({ type: 'error', errorText })
    yield encodeUIChunk({ type: 'finish', finishReason: 'error' })
  }
  if (!signal.aborted) yield UI_STREAM_DONE
}

/** The thread of a chat: the client chose its id, or it is the id of the thread itself. */
export async function findChat(
  runtime: Runtime,
  principal: Principal,
  chatId: string,
): Promise<ThreadHead> {
  const head = await runtime.threads.byClientId(principal.tenant, chatId)
  if (head && (seesAllOwners(principal) || head.owner === principal.user)) return head
  return findThread(runtime, principal, chatId)
}

/** The thread of a chat; made when the id is new. */
async function openChat(
  runtime: Runtime,
  principal: Principal,
  { chatId, agent }: { readonly chatId: string; readonly agent: string },
): Promise<ThreadHead> {
  runtime.registry.agent(agent)
  const known = await knownChat(runtime, principal, chatId)
  if (known) return known
  const { tenant, user } = principal
  try {
    const owner = user === undefined ? {} : { owner: user }
    return await runtime.threads.create({ agent, tenant, clientId: chatId, ...owner })
  } catch (error) {
    if (!SkeinError.is(error) || error.code !== 'CLIENT_ID_TAKEN') throw error
    // Two requests were the first, or the id is somebody else's.
    const made = await knownChat(runtime, principal, chatId)
    if (made) return made
    throw threadNotFound()
  }
}

async function knownChat(
  runtime: Runtime,
  principal: Principal,
  chatId: string,
): Promise<ThreadHead | undefined> {
  try {
    return await findChat(runtime, principal, chatId)
  } catch (error) {
    if (SkeinError.is(error) && error.code === 'THREAD_NOT_FOUND') return undefined
    throw error
  }
}
