import type { ThreadIdentity } from '../../operations/thread-identity.ts'
import { decodeBase64, isPlainObject, type JsonObject, type JsonValue } from '@skein/base'
import type { UserContent } from '@skein/ai'
import { HttpError } from '../../operations/http-error.ts'
import type { Runtime, SendMessage } from '@skein/runtime'

/** A person's decision, or the result of a tool that ran in the page. */
export type ClientAnswer =
  | {
      readonly type: 'decision'
      readonly approvalId: string
      readonly isApproved: boolean
      readonly reason?: string
      /** The arguments with which the person approves the call, in place of those of the model. */
      readonly with?: JsonObject
      /** Returns a call's arguments as the page displayed them; undefined if it did not display the call. */
      readonly shown: (toolCallId: string) => JsonValue | undefined
    }
  | { readonly type: 'output'; readonly toolCallId: string; readonly output: JsonValue }
  | { readonly type: 'failure'; readonly toolCallId: string; readonly message: string }

/** A chat request, reduced to the parts that a page may decide. */
export interface ChatBody {
  readonly chatId: string
  /** Messages after the last answer. Messages that the thread already has are not sent again. */
  readonly messages: readonly (SendMessage & { readonly messageId: string })[]
  /** Answers found in the assistant's messages. Answers that the thread does not wait for have no effect. */
  readonly answers: readonly ClientAnswer[]
  /** The assistant message that contains the answers. */
  readonly answered?: string
  /** The assistant message that the page continues: the page has its beginning and needs only the rest. */
  readonly continued?: string
  /** What the messages do to a thread that is busy. */
  readonly ifBusy?: SendMessage['ifBusy']
}

/**
 * Creates the error for a request that would rewrite history. A message can be answered anew only in a copy
 * of the thread.
 */
export function historyIsFixed(): HttpError {
  return new HttpError('A message of a thread cannot be answered again or replaced.', {
    code: 'HISTORY_FIXED',
    hint: 'Copy the thread up to the message before it (POST /threads/{threadId}/fork) and continue in the copy.',
  })
}

/**
 * Returns the messages that the thread does not have yet. Throws when a known message id comes with another
 * text.
 */
export async function newMessages(
  runtime: Runtime,
  { id, seq }: ThreadIdentity,
  { messages }: ChatBody,
): Promise<ChatBody['messages']> {
  const storedIds = new Map<string, string>()
  if (messages.length > 0 && seq > FIRST_EVENTS)
    for (const { message } of await runtime.threads.messages(id, { order: 'desc', limit: 1000 }))
      storedIds.set(message.id, message.text)
  return messages.filter(({ messageId, content = [] }) => {
    const storedId = storedIds.get(messageId)
    const text = content.map((block) => (block.type === 'text' ? block.text : '')).join('')
    if (storedId !== undefined && storedId !== text) throw historyIsFixed()
    storedIds.set(messageId, text)
    return storedId === undefined
  })
}

/** Each message is a commit of its own, so the number of new messages in one request is limited. */
export const MAX_NEW_MESSAGES = 100

export function tooMany(): HttpError {
  return invalid('body.messages', `must have at most ${MAX_NEW_MESSAGES} new messages`)
}

/** A thread with at most this many events has just been created and contains no messages. */
const FIRST_EVENTS = 2

/** Reads how a person decided. A decision that is not a clear yes or no is refused. */
export function toDecision(
  { approved, reason, with: args }: JsonObject,
  field: string,
): Pick<Extract<ClientAnswer, { type: 'decision' }>, 'isApproved' | 'reason' | 'with'> {
  if (typeof approved !== 'boolean') throw invalid(`${field}.approved`, 'must be true or false')
  if (typeof reason === 'string' && reason.length > MAX_REASON)
    throw invalid(`${field}.reason`, `must have at most ${MAX_REASON} characters`)
  if (args !== undefined && !isPlainObject(args))
    throw invalid(`${field}.with`, 'must be an object: all arguments of the call')
  return {
    isApproved: approved,
    reason: typeof reason === 'string' && reason !== '' ? reason : undefined,
    with: args as JsonObject | undefined, // the body is JSON
  }
}

/** The longest reason that a person may give for a decision, in characters; the inbox has the same limit. */
const MAX_REASON = 10_000

export function invalid(field: string, message: string): HttpError {
  return new HttpError(`${field} ${message}.`, {
    code: 'INPUT_INVALID',
    problems: [{ field, message }],
  })
}

/** Converts the text and files of a page's message to content blocks for a model. */
export function toUserContent(
  parts: readonly JsonObject[],
  field: string,
): readonly [UserContent, ...UserContent[]] {
  const [first, ...rest] = parts.flatMap((part, index): UserContent[] => {
    const { type, text: words } = part
    const at = `${field}.parts[${index}]`
    if (type === 'file') return [fileBlock(part, at)]
    if (type !== 'text') return [] // other parts are data for the page itself
    if (typeof words !== 'string') throw invalid(`${at}.text`, 'must be a string')
    return words === '' ? [] : [{ type: 'text', text: words }]
  })
  if (first) return [first, ...rest]
  throw invalid(field, 'has neither text nor a file')
}

function fileBlock({ url, mediaType, filename }: JsonObject, field: string): UserContent {
  if (typeof url !== 'string' || typeof mediaType !== 'string')
    throw invalid(field, 'must have a url and a mediaType')
  const data = /^data:[^,]*;base64,([\w+/=-]*)$/.exec(url)?.[1]
  if (data === undefined && !url.startsWith('https://'))
    throw invalid(`${field}.url`, 'must be a data: URL in base64, or begin with https://')
  const content = data === undefined ? undefined : bytesOf(data, field)
  const source =
    data === undefined ? ({ type: 'url', url } as const) : ({ type: 'base64', data } as const)
  if (mediaType.startsWith('image/')) return { type: 'image', source, mimeType: mediaType }
  const title = typeof filename === 'string' ? filename : undefined
  if (mediaType === 'application/pdf' || mediaType.startsWith('text/'))
    return { type: 'document', source, mimeType: mediaType, title }
  if (content === undefined) throw invalid(`${field}.url`, 'must be a data: URL for this mediaType')
  const bytes = { data: content, mimeType: mediaType }
  if (mediaType.startsWith('audio/')) return { type: 'audio', ...bytes }
  if (mediaType.startsWith('video/')) return { type: 'video', ...bytes }
  return { type: 'binary', ...bytes }
}

function bytesOf(base64: string, field: string): Uint8Array<ArrayBuffer> {
  try {
    return decodeBase64(base64)
  } catch {
    // The error of the decoder does not name the field, so it is replaced.
    throw invalid(`${field}.url`, 'must contain padded base64 with the characters + and /')
  }
}
