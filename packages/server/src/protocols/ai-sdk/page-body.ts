import { IF_BUSY } from '@skein/runtime/serving'
import { isPlainObject, type JsonObject, type JsonValue } from '@skein/base'
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
} from '@skein/base/shape'
import type { SendMessage } from '@skein/runtime'
import {
  type ClientAnswer,
  type ChatBody,
  historyIsFixed,
  toDecision,
  invalid,
  toUserContent,
} from '../chat/chat-body.ts'

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
  const inputOf = (id: string): JsonValue | undefined => (id === toolCallId ? input : undefined)
  const decision = toDecision(approval as JsonObject, 'approval') // the body is JSON
  return [{ type: 'decision', approvalId: approval['id'], shown: inputOf, ...decision }]
}
