import { decodeBase64, isPlainObject, type JsonObject, type JsonValue } from '@skein/base'
import type { UserContent } from '@skein/ai'
import { HttpError } from '../../operations/http-error.ts'
import type { Principal } from '../../operations/principal.ts'
import {
  answer,
  label,
  arrayOf,
  object,
  choice,
  string,
  maxText,
  type Shape,
} from '../../operations/shape.ts'
import { IF_BUSY, type SendMessage } from '../../contract/runtime-api.ts'

/** A person's decision, or the result of a tool that ran in the page. */
export type ClientAnswer =
  | {
      readonly type: 'decision'
      readonly approvalId: string
      readonly isApproved: boolean
      readonly reason?: string
      /** The arguments with which the person approves the call instead. */
      readonly with?: JsonObject
      /** The arguments with which the page shows a call to the person; undefined if it does not show it. */
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

/** The body of a chat request as a page sends it; pages may add fields. */
export interface PageBody {
  readonly id: string
  readonly messages: readonly {
    readonly id: string
    readonly role: 'system' | 'user' | 'assistant'
    readonly parts: readonly JsonObject[]
  }[]
  readonly trigger?: string
  readonly messageId?: string
  readonly ifBusy?: SendMessage['ifBusy']
}

/** The shape of a chat request. */
export const CHAT_BODY: Shape<PageBody> = answer({
  id: label(200),
  messages: arrayOf(
    answer({
      id: label(200),
      role: choice('system', 'user', 'assistant'),
      parts: arrayOf(object, 10_000),
    }),
  ),
  'trigger?': string,
  'messageId?': maxText(200),
  'ifBusy?': choice(...IF_BUSY),
})

/** Parses a chat request. The history in it is ignored, because the thread has its own. */
export function parseChatBody(body: PageBody, principal: Principal): ChatBody {
  const { id: chatId, messages, trigger = 'submit-message', messageId, ifBusy } = body
  if (trigger === 'regenerate-message') throw historyIsFixed()
  if (trigger !== 'submit-message')
    throw invalid('body.trigger', 'must be submit-message or regenerate-message')
  const start = messages.findLastIndex(({ role }) => role === 'assistant') + 1
  const assistant = messages.findLast(
    ({ role, parts }) => role === 'assistant' && parts.some(isAnswered),
  )
  const isContinued =
    messageId !== undefined &&
    messages.some((message) => message.role === 'assistant' && message.id === messageId)
  return {
    chatId,
    messages: messages.slice(start).flatMap((message, index) =>
      message.role === 'user'
        ? [
            {
              content: toUserContent(message.parts, `body.messages[${start + index}]`),
              messageId: message.id,
              userId: principal.user,
            },
          ]
        : [],
    ),
    answers: assistant?.parts.flatMap(toAnswer) ?? [],
    answered: assistant?.id,
    continued: isContinued ? messageId : undefined,
    ifBusy,
  }
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

const ANSWERED: ReadonlySet<unknown> = new Set([
  'approval-responded',
  'output-available',
  'output-error',
])

function isAnswered({ type, state }: JsonObject): boolean {
  const isTool = typeof type === 'string' && (type === 'dynamic-tool' || type.startsWith('tool-'))
  return isTool && ANSWERED.has(state)
}

function toAnswer(part: JsonObject): ClientAnswer[] {
  const { toolCallId, state, input, approval, output, errorText } = part
  if (!isAnswered(part) || typeof toolCallId !== 'string') return []
  if (state === 'output-available') return [{ toolCallId, type: 'output', output: output ?? null }]
  if (state === 'output-error')
    return [
      { toolCallId, type: 'failure', message: typeof errorText === 'string' ? errorText : '' },
    ]
  if (!isPlainObject(approval) || typeof approval['id'] !== 'string') return []
  const {
    id: approvalId,
    approved,
    reason,
    with: args,
  } = approval as { id: string; approved?: unknown; reason?: unknown; with?: JsonValue }
  const why = typeof reason === 'string' && reason !== '' ? reason : undefined
  const shown = (id: string): JsonValue | undefined => (id === toolCallId ? input : undefined)
  const isApproved = approved === true
  return [
    { type: 'decision', approvalId, isApproved, reason: why, shown, ...changedArguments(args) },
  ]
}

/** Reads the arguments with which a person approves a call; anything but an object is refused. */
export function changedArguments(given: JsonValue | undefined): { readonly with?: JsonObject } {
  if (given === undefined) return {}
  if (isPlainObject(given)) return { with: given as JsonObject }
  throw invalid('approval.with', 'must be an object: all arguments of the call')
}

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
  const source =
    data === undefined ? ({ type: 'url', url } as const) : ({ type: 'base64', data } as const)
  if (mediaType.startsWith('image/')) return { type: 'image', source, mimeType: mediaType }
  const title = typeof filename === 'string' ? filename : undefined
  if (mediaType === 'application/pdf' || mediaType.startsWith('text/'))
    return { type: 'document', source, mimeType: mediaType, title }
  if (data === undefined) throw invalid(`${field}.url`, 'must be a data: URL for this mediaType')
  const bytes = { data: decodeBase64(data), mimeType: mediaType }
  if (mediaType.startsWith('audio/')) return { type: 'audio', ...bytes }
  if (mediaType.startsWith('video/')) return { type: 'video', ...bytes }
  return { type: 'binary', ...bytes }
}
