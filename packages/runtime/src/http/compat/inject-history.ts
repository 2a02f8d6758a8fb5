import { AssistantMessage, UserMessage, type Message } from '@skein/ai'
import type { Runtime } from '../../runtime-api.ts'

/**
 * Gives a new thread the history that a client sends. Calls and results in it were not made here: they
 * are told in words.
 */
export async function injectHistory(
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
      const told = toldMessage(message)
      if (told)
        state.injectMessage({ content: told, role: told.type === 'user' ? 'user' : 'assistant' })
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

/** The result of a call in words. */
export function spokenResult(result: unknown): string {
  return typeof result === 'string' ? result : (JSON.stringify(result) ?? '')
}
