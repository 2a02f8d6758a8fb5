import type { ThreadIdentity } from '../../operations/thread-identity.ts'
import { isPlainObject, type JsonObject, type JsonValue, tryParseJson } from '@skein/base'
import {
  type AgUiEvent,
  type AgUiMessage,
  AgUiStreamEncoder,
  toAgUiMessages,
} from '@skein/threads/ag-ui'
import { operation, stream, type OperationRoute } from '../../operations/operation.ts'
import type { Principal } from '../../operations/principal.ts'
import {
  answer,
  anything,
  arrayOf,
  boolean,
  choice,
  label,
  type Infer,
  type Shape,
} from '@skein/base/shape'
import { IF_BUSY } from '@skein/runtime/serving'
import {} from '@skein/runtime'
import { eventResponse } from '../../streams/event-stream.ts'
import { admitChat, type AdmittedChat, type ChatCall } from '../chat/admit-chat.ts'
import { answerStream, type AnswerStreamOptions } from '../chat/answer-stream.ts'
import {
  type ChatBody,
  type ClientAnswer,
  invalid,
  toDecision,
  toUserContent,
} from '../chat/chat-body.ts'
import { chatHistory } from '../chat/chat-history.ts'
import { findAnswer } from '../chat/find-answer.ts'
import { isAnsweringChat } from '../chat/until-settled.ts'
import { holds } from '../chat/shown-events.ts'

const message: Shape<JsonObject & { readonly id: string; readonly role: string }> = answer({
  id: label(400),
  role: choice('user', 'assistant', 'tool', 'reasoning', 'system', 'developer', 'activity'),
})

/** The parts of AG-UI's `RunAgentInput` that are read; the others are allowed. */
const AG_UI_BODY = answer({
  threadId: label(200),
  runId: label(200),
  messages: arrayOf(message),
  'resume?': arrayOf(
    answer({
      interruptId: label(200),
      status: choice('resolved', 'cancelled'),
      'payload?': anything,
    }),
    1000,
  ),
  'forwardedProps?': anything,
})

type AgUiBody = Infer<typeof AG_UI_BODY>

/** The operation that AG-UI's `HttpAgent` calls. */
export const agUiOperations: readonly OperationRoute[] = [
  operation('runAgUi', {
    tag: 'chat',
    summary: 'Runs an agent for an AG-UI client, and streams the events of the run.',
    scope: 'threads:write',
    probe: {
      body: {
        threadId: 'my-chat',
        runId: 'run-1',
        messages: [{ id: 'm1', role: 'user', content: 'Hello' }],
      },
    },
    query: { hold: boolean, children: boolean },
    body: { json: AG_UI_BODY, isLarge: true },
    answers: [stream('Events of AG-UI 1.0, from `RUN_STARTED` to `RUN_FINISHED` or `RUN_ERROR`.')],
    errors: [
      'AGENT_NOT_FOUND',
      'THREAD_NOT_FOUND',
      'THREAD_TERMINATED',
      'THREAD_BUSY',
      'HISTORY_FIXED',
      'ANSWER_INVALID',
      'STREAM_LIMIT',
    ],
    async run(call) {
      const { body, principal } = call
      const chat = await admitChat(call, parseAgUiBody(body, principal))
      return chat.answer && !chat.isRepeated
        ? streamRun(call, chat.thread, chat.answer)
        : replay(call, chat)
    },
  }),
]

type AgUiCall = ChatCall & { readonly body: AgUiBody }

/** Streams the answer to the new messages, decisions and tool results in the request. */
function streamRun(
  call: AgUiCall,
  thread: ThreadIdentity,
  options: Pick<AnswerStreamOptions, 'after' | 'queueId' | 'continues'>,
): Response {
  const { threadId, runId } = call.body
  const messages = clientMessages(call.body)
  const questions = messages.slice(lastAnswer(messages) + 1).filter(({ role }) => role === 'user')
  return send(
    call,
    thread,
    new AgUiStreamEncoder({ threadId, runId, messages, asked: questions }),
    options,
  )
}

/**
 * Answers a client that has nothing new, for example after it lost its connection. The client gets the
 * messages of the thread in place of its own, then the answer that is being given, from its beginning.
 */
async function replay(call: AgUiCall, { thread: { id }, answer }: AdmittedChat): Promise<Response> {
  const { runtime, services, body } = call
  const { threadId, runId } = body
  const thread = await runtime.threads.head(id)
  const { messages: chat } = await chatHistory(runtime, thread, { hold: holds(call) })
  if (!(await isAnsweringChat(runtime, thread, services.clock.now()))) {
    const { messages, outcome } = toAgUiMessages(chat)
    const encoder = new AgUiStreamEncoder({ threadId, runId, messages, isReplay: true })
    return eventResponse(call, async function* () {
      yield encode([...encoder.start(), ...encoder.end(outcome)])
    })
  }
  const place = await findAnswer(runtime, id, thread.seq)
  // The answer that is being given is not part of the history: it is streamed.
  const isLast = place.messageId !== undefined && chat.at(-1)?.id === place.messageId
  const { messages: history } = toAgUiMessages(isLast ? chat.slice(0, -1) : chat)
  const messages = withClientOnly(history, clientMessages(body))
  const encoder = new AgUiStreamEncoder({ threadId, runId, messages, isReplay: true })
  return send(call, thread, encoder, { after: answer?.after ?? place.after })
}

/**
 * Adds what the client has and the history lacks: a message of the person that is still in the queue, and
 * reasoning of the answer that is being given. Clients keep reasoning that is missing from the list of
 * messages, so the reasoning is sent empty, and the stream fills it again.
 */
function withClientOnly(
  history: readonly AgUiMessage[],
  client: readonly AgUiMessage[],
): readonly AgUiMessage[] {
  const historyIds = new Set(history.map(({ id }) => id))
  const fresh = client.slice(client.findLastIndex(({ id }) => historyIds.has(id)) + 1)
  const own = fresh.flatMap((message): AgUiMessage[] => {
    if (message.role === 'reasoning') return [{ id: message.id, role: 'reasoning', content: '' }]
    return message.role === 'user' ? [message] : []
  })
  return [...history, ...own]
}

function send(
  call: AgUiCall,
  thread: ThreadIdentity,
  encoder: AgUiStreamEncoder,
  options: Pick<AnswerStreamOptions, 'after' | 'queueId' | 'continues'>,
): Response {
  const { runtime, services, query } = call
  const { children = false } = query
  const hold = holds(call)
  return eventResponse(call, async function* (signal) {
    yield encode(encoder.start())
    const chunks = answerStream(runtime, thread, { ...options, hold, children, signal })
    try {
      for await (const chunk of chunks) {
        const events = encoder.push(chunk)
        if (events.length > 0) yield encode(events)
      }
    } catch (error) {
      if (signal.aborted) return
      services.report(error)
      const errorText = 'Something went wrong on the server.'
      yield encode(encoder.push({ type: 'error', errorText }))
    }
  })
}

function encode(events: readonly AgUiEvent[]): string {
  return events.map((event) => `data: ${JSON.stringify(event)}\n\n`).join('')
}

/**
 * Parses a request of an AG-UI client. Only what is new is read: the user messages after the last answer, the
 * results of tools that ran in the client, and the answers to calls that wait. The rest of the history, and
 * the state, tools and context of the client have no effect.
 */
function parseAgUiBody(body: AgUiBody, principal: Principal): ChatBody {
  const { threadId, messages, resume = [], forwardedProps } = body
  const { ifBusy } = isPlainObject(forwardedProps) ? (forwardedProps as JsonObject) : {}
  const choice = IF_BUSY.find((one) => one === ifBusy)
  if (ifBusy !== undefined && !choice)
    throw invalid('body.forwardedProps.ifBusy', `must be one of ${IF_BUSY.join(', ')}`)
  const start = lastAnswer(messages) + 1
  const answers = [
    ...messages.flatMap(toolOutput),
    ...resume.map((entry, index) => decision(entry, messages, `body.resume[${index}].payload`)),
  ]
  return {
    chatId: threadId,
    messages: messages.slice(start).flatMap((message, index) =>
      message.role === 'user'
        ? [
            {
              content: contentOf(message, `body.messages[${start + index}]`),
              messageId: message.id,
              userId: principal.user,
            },
          ]
        : [],
    ),
    answers,
    answered: answers.length > 0 ? threadId : undefined,
    ifBusy: choice,
  }
}

function lastAnswer(messages: readonly { readonly role: string }[]): number {
  return messages.findLastIndex(({ role }) => role === 'assistant')
}

function clientMessages({ messages }: AgUiBody): readonly AgUiMessage[] {
  return messages as unknown as readonly AgUiMessage[] // sent back to the same client only
}

function toolOutput({ role, toolCallId, content, error }: JsonObject): ClientAnswer[] {
  if (role !== 'tool' || typeof toolCallId !== 'string') return []
  if (typeof error === 'string') return [{ type: 'failure', toolCallId, message: error }]
  return [{ type: 'output', toolCallId, output: content ?? null }]
}

function decision(
  { interruptId, status, payload }: NonNullable<AgUiBody['resume']>[number],
  messages: AgUiBody['messages'],
  field: string,
): ClientAnswer {
  const argumentsShown = (toolCallId: string) => shownArguments(messages, toolCallId)
  const base = { type: 'decision', approvalId: interruptId, shown: argumentsShown } as const
  if (status === 'cancelled') return { ...base, isApproved: false }
  if (!isPlainObject(payload)) throw invalid(field, 'must be an object with the boolean approved')
  return { ...base, ...toDecision(payload as JsonObject, field) } // the body is JSON
}

/** Returns the arguments of a call as the client holds them. */
function shownArguments(messages: AgUiBody['messages'], toolCallId: string): JsonValue | undefined {
  for (const { role, toolCalls } of messages) {
    if (role !== 'assistant' || !Array.isArray(toolCalls)) continue
    for (const call of toolCalls) {
      if (!isPlainObject(call) || call['id'] !== toolCallId) continue
      const text = isPlainObject(call['function']) ? call['function']['arguments'] : undefined
      return typeof text === 'string' ? tryParseJson(text) : undefined
    }
  }
  return undefined
}

/** Converts the content of a user message to the form of chat pages, for which there is a parser. */
function contentOf({ content }: JsonObject, field: string): ReturnType<typeof toUserContent> {
  if (!Array.isArray(content)) return toUserContent([{ type: 'text', text: content ?? '' }], field)
  const parts = content.map((part, index): JsonObject => {
    const { type, text, source } = (isPlainObject(part) ? part : {}) as JsonObject // the body is JSON
    if (type === 'text') return { type, text: text ?? null }
    if (!isPlainObject(source) || typeof type !== 'string')
      throw invalid(`${field}.content[${index}]`, 'must be text, or a file with a source')
    const { type: kind, value = null, mimeType = `${type}/*` } = source as JsonObject
    const isData = kind === 'data' && typeof value === 'string' && typeof mimeType === 'string'
    return {
      type: 'file',
      url: isData ? `data:${mimeType};base64,${value}` : value,
      mediaType: mimeType,
    }
  })
  return toUserContent(parts, field)
}
