import type { UIMessageChunk } from '@skein/threads/ai-sdk'
import type { Runtime, SendMessage } from '../../runtime-api.ts'
import type { ThreadHead } from '../../store/store.ts'
import { accountOf, actorOf } from '../principal.ts'
import type { Call } from '../route.ts'
import { answerStream, type AnswerStreamOptions } from './answer-stream.ts'
import { historyIsFixed, parseChatBody, type ChatBody } from './chat-body.ts'
import { chatResponse } from './chat-response.ts'
import { findAnswer, type AnswerPlace } from './find-answer.ts'
import { openChat } from './find-chat.ts'
import { giveAnswers } from './give-answers.ts'

/** What can be asked of a stream in its address. */
export interface ChatQuery {
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
