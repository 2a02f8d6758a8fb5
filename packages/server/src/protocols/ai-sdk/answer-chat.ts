import type { ThreadIdentity } from '../../operations/thread-identity.ts'
import {
  encodeUIChunk,
  UI_STREAM_DONE,
  UI_STREAM_HEADERS,
  type UIMessageChunk,
} from '@skein/threads/ai-sdk'
import type {} from '@skein/runtime'
import { eventResponse } from '../../streams/event-stream.ts'
import { answerStream, type AnswerStreamOptions } from '../chat/answer-stream.ts'
import { parseChatBody, type PageBody } from './page-body.ts'
import { holds } from '../chat/shown-events.ts'
import { type ChatCall, admitChat } from '../chat/admit-chat.ts'

/**
 * Reads a chat request of a page and streams the answer. New user messages, decisions, and results of tools
 * that ran in the page are taken from the body; the rest is history that the thread already has.
 */
export async function answerChat(
  call: ChatCall & { readonly params: { readonly agent: string }; readonly body: PageBody },
): Promise<Response> {
  const body = parseChatBody(call.body, call.principal)
  const { answer, thread, messageId } = await admitChat(call, body)
  return answer ? streamAnswer(call, thread, answer) : nothingNew(call, messageId)
}

/** Streams an answer of a thread to the page. */
export function streamAnswer(
  call: ChatCall,
  thread: ThreadIdentity,
  options: Pick<AnswerStreamOptions, 'after' | 'queueId' | 'continues'>,
): Response {
  const { children = false } = call.query
  const hold = holds(call)
  return chatResponse(call, (signal) =>
    answerStream(call.runtime, thread, { ...options, hold, children, signal }),
  )
}

/**
 * Returns an empty answer. The finish reason `interrupted` keeps pages that send automatically from repeating
 * the request forever.
 */
function nothingNew(call: ChatCall, messageId?: string): Response {
  return chatResponse(call, async function* (): AsyncGenerator<UIMessageChunk> {
    yield { type: 'start', messageId }
    yield { type: 'finish', finishReason: 'interrupted' }
  })
}

/**
 * Sends chunks as the UI message stream that `useChat` reads. Closing the connection does not stop the
 * thread.
 */
function chatResponse(
  call: ChatCall,
  chunks: (signal: AbortSignal) => AsyncIterable<UIMessageChunk>,
): Response {
  const { report } = call.services
  const response = eventResponse(call, async function* (signal) {
    try {
      for await (const chunk of chunks(signal)) yield encodeUIChunk(chunk)
    } catch (error) {
      if (signal.aborted) return
      report(error)
      const errorText = 'Something went wrong on the server.'
      yield encodeUIChunk({ type: 'error', errorText })
      yield encodeUIChunk({ type: 'finish', finishReason: 'error' })
    }
    if (!signal.aborted) yield UI_STREAM_DONE
  })
  const version = 'x-vercel-ai-ui-message-stream'
  response.headers.set(version, UI_STREAM_HEADERS[version]!)
  return response
}
