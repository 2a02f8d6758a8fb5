/** A chat model of LangChain that makes the calls of a script, one per message, and then says something. */
import { AIMessage, type BaseMessage } from '@langchain/core/messages'
import { FakeListChatModel } from '@langchain/core/utils/testing'

export interface Call {
  readonly name: string
  readonly args: Record<string, string>
}

export class ScriptedModel extends FakeListChatModel {
  asked = 0
  readonly #calls: readonly Call[]
  readonly #text: string

  constructor(calls: readonly Call[], text: string) {
    super({ responses: [text] })
    this.#calls = calls
    this.#text = text
  }

  override async _generate(messages: BaseMessage[]) {
    this.asked += 1
    const call = this.#calls[messages.filter((message) => message.getType() === 'tool').length]
    const id = `call_${crypto.randomUUID()}`
    const message = call
      ? new AIMessage({ content: '', tool_calls: [{ ...call, id, type: 'tool_call' }] })
      : new AIMessage(this.#text)
    return { generations: [{ message, text: message.text }] }
  }

  override bindTools(): this {
    return this
  }
}
