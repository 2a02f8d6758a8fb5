import {
  AbstractChat,
  DefaultChatTransport,
  lastAssistantMessageIsCompleteWithApprovalResponses,
  lastAssistantMessageIsCompleteWithToolCalls,
  type ChatInit,
  type ChatState,
  type ChatStatus,
  type UIMessage,
} from 'ai'
import { startChatKit, type ChatKit, type Who } from './chat-kit.ts'

/** A chat kit whose pages are the real chat class of the `ai` package. */
export interface ChatClientKit extends ChatKit {
  chat(
    who: Who,
    options?: ChatInit<UIMessage> & {
      readonly api?: string
      /** The number of the last event of the history; resuming begins there. */
      readonly seq?: number
    },
  ): Chat
}

export async function startChatClientKit(
  options: Parameters<typeof startChatKit>[0] = {},
): Promise<ChatClientKit> {
  const kit = await startChatKit(options)
  return {
    ...kit,
    chat: (who, { api = '/agents/desk/chat', seq, ...init } = {}) =>
      new Chat({
        ...init,
        transport: new DefaultChatTransport({
          api,
          prepareReconnectToStreamRequest: ({ id }) =>
            seq === undefined ? {} : { api: `${api}/${id}/stream?after=${seq}` },
          fetch: (input, request) => kit.fetch(who, String(input), request),
        }),
      }),
  }
}

class State implements ChatState<UIMessage> {
  status: ChatStatus = 'ready'
  error: Error | undefined = undefined
  messages: UIMessage[]

  constructor(messages: UIMessage[] = []) {
    this.messages = messages
  }

  pushMessage = (message: UIMessage): void => {
    this.messages = [...this.messages, structuredClone(message)]
  }
  popMessage = (): void => {
    this.messages = this.messages.slice(0, -1)
  }
  replaceMessage = (index: number, message: UIMessage): void => {
    this.messages = this.messages.with(index, structuredClone(message))
  }
  snapshot = <T>(value: T): T => structuredClone(value)
}

/** The chat class behind `useChat`, without React. */
export class Chat extends AbstractChat<UIMessage> {
  constructor({ messages, ...init }: ChatInit<UIMessage>) {
    super({
      onError: () => undefined,
      sendAutomaticallyWhen: (chat) =>
        lastAssistantMessageIsCompleteWithApprovalResponses(chat) ||
        lastAssistantMessageIsCompleteWithToolCalls(chat),
      ...init,
      state: new State(messages),
    })
  }
}
