import {
  AbstractChat,
  lastAssistantMessageIsCompleteWithApprovalResponses,
  lastAssistantMessageIsCompleteWithToolCalls,
  readUIMessageStream,
  uiMessageChunkSchema,
  type ChatState,
  type ChatStatus,
  type ChatTransport,
  type UIMessage,
  type UIMessageChunk,
} from 'ai'
import { plain } from './plain.ts'

class State implements ChatState<UIMessage> {
  status: ChatStatus = 'ready'
  error: Error | undefined = undefined
  messages: UIMessage[]

  constructor(messages: UIMessage[]) {
    this.messages = messages
  }

  pushMessage = (message: UIMessage): void => {
    this.messages = [...this.messages, message]
  }
  popMessage = (): void => {
    this.messages = this.messages.slice(0, -1)
  }
  replaceMessage = (index: number, message: UIMessage): void => {
    this.messages = this.messages.with(index, structuredClone(message))
  }
  snapshot = <T>(value: T): T => structuredClone(value)
}

class Chat extends AbstractChat<UIMessage> {
  constructor(
    messages: UIMessage[],
    transport: ChatTransport<UIMessage>,
    onFinish: (end: Finish) => void,
  ) {
    super({ state: new State(messages), transport, onFinish, onError: () => undefined })
  }
}

export interface Finish {
  readonly isAbort: boolean
  readonly isDisconnect: boolean
  readonly isError: boolean
  readonly finishReason?: string | undefined
}

/** What the real chat class of the `ai` package holds after it has read a response. */
export async function realChat(
  before: readonly unknown[],
  chunks: Iterable<unknown>,
): Promise<{
  messages: unknown[]
  status: string
  error: string | undefined
  finish: Finish | undefined
}> {
  const messages = structuredClone(before) as UIMessage[]
  const stream = () => Promise.resolve(streamOf(chunks))
  const transport = { sendMessages: stream, reconnectToStream: () => Promise.resolve(null) }
  let finish: Finish | undefined
  const last = messages.at(-1)
  const initial = last?.role === 'user' ? messages.slice(0, -1) : messages
  const chat = new Chat(initial, transport as ChatTransport<UIMessage>, (end) => (finish = end))
  if (last?.role === 'user') await chat.sendMessage(last as never)
  else await chat.sendMessage()
  return {
    messages: plain(chat.messages) as unknown[],
    status: chat.status,
    error: chat.error?.message,
    finish,
  }
}

/**
 * Lets the real chat answer an approval, with both stock predicates for sending by itself, and counts what it
 * posts until it rests, ten posts at most. Every post is answered with the same chunks.
 */
export async function postsAfterApproval(
  before: readonly unknown[],
  chunks: Iterable<unknown>,
  approvalId: string,
): Promise<{ posts: number; messages: unknown[] }> {
  const list = [...chunks]
  let posts = 0
  const transport = {
    sendMessages: () => {
      if (++posts > 10) return Promise.reject(new Error('The client posts for ever.'))
      return Promise.resolve(streamOf(list))
    },
    reconnectToStream: () => Promise.resolve(null),
  }
  const chat = new (class extends AbstractChat<UIMessage> {})({
    state: new State(structuredClone(before) as UIMessage[]),
    transport: transport as ChatTransport<UIMessage>,
    onError: () => undefined,
    sendAutomaticallyWhen: (options) =>
      lastAssistantMessageIsCompleteWithApprovalResponses(options) ||
      lastAssistantMessageIsCompleteWithToolCalls(options),
  })
  await chat.addToolApprovalResponse({ id: approvalId, approved: true })
  for (let last = -1, rest = 0; rest < 20; rest = last === posts ? rest + 1 : 0) {
    last = posts
    await new Promise((resolve) => setTimeout(resolve, 2))
  }
  return { posts, messages: plain(chat.messages) as unknown[] }
}

/** The last state that the real `readUIMessageStream` gives. */
export async function realRead(chunks: Iterable<unknown>, message?: unknown): Promise<unknown> {
  let last: unknown
  const options = { stream: streamOf(chunks), terminateOnError: true }
  const continued = message === undefined ? {} : { message: structuredClone(message) as UIMessage }
  for await (const state of readUIMessageStream({ ...options, ...continued })) last = state
  return plain(last)
}

/** Names the first chunk that the real schema refuses. */
export async function refusedChunk(chunks: Iterable<unknown>): Promise<string | undefined> {
  const schema = uiMessageChunkSchema()
  for (const chunk of chunks) {
    // Through text, as on the wire: undefined fields vanish there.
    const result = await schema.validate?.(plain(chunk))
    if (!result?.success) return JSON.stringify(chunk)
  }
  return undefined
}

function streamOf(chunks: Iterable<unknown>): ReadableStream<UIMessageChunk> {
  const list = [...chunks].map(plain) as UIMessageChunk[]
  return new ReadableStream({
    start(controller) {
      for (const chunk of list) controller.enqueue(chunk)
      controller.close()
    },
  })
}
