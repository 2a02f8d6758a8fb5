import type { Converted } from '../../issue.ts'
import type { Thread } from '../../types.ts'
import { UIMessageAssembler } from './assemble.ts'
import { fromUIMessages, type FromUIMessagesOptions } from './from-ui-messages.ts'
import type { UIMessage, UIMessageChunk } from './types.ts'

/** What a decoder needs beside the stream itself. */
export interface DecodeUIStreamOptions extends Omit<FromUIMessagesOptions, 'notes'> {
  /** The client's messages before the response. If the last is the assistant's, the response continues it. */
  readonly messages?: readonly UIMessage[]
}

/**
 * Reads a UI message stream into a thread: push chunks as they come, look at `messages` at any time, and take the
 * thread at the end. Chunks that leave no trace are named in `lost`, with their place in the stream.
 */
export class UIStreamDecoder {
  readonly #options: DecodeUIStreamOptions
  readonly #before: readonly UIMessage[]
  readonly #assembler: UIMessageAssembler

  constructor(options: DecodeUIStreamOptions = {}) {
    const messages = options.messages ?? []
    const last = messages.at(-1)
    const isContinued = last?.role === 'assistant'
    this.#options = options
    this.#before = isContinued ? messages.slice(0, -1) : messages
    this.#assembler = new UIMessageAssembler(isContinued ? last : undefined)
  }

  push(chunk: UIMessageChunk): void {
    this.#assembler.push(chunk)
  }

  /** False when the stream stopped before its `finish`: something was lost on the way. */
  get isFinished(): boolean {
    return this.#assembler.isFinished
  }

  /** The chat as the client would hold it now. */
  get messages(): UIMessage[] {
    return [...this.#before, this.#assembler.message]
  }

  end(): Converted<Thread> {
    const { value, lost } = fromUIMessages(this.messages, {
      ...this.#options,
      notes: this.#assembler,
    })
    const dropped = this.#assembler.dropped.map(({ index, type, reason }) => ({
      pointer: `/chunks/${index}`,
      reason: `${type}: ${reason}`,
    }))
    return { value, lost: [...dropped, ...lost] }
  }
}

/** A whole stream as a thread. */
export function fromUIChunks(
  chunks: Iterable<UIMessageChunk>,
  options?: DecodeUIStreamOptions,
): Converted<Thread> {
  const decoder = new UIStreamDecoder(options)
  for (const chunk of chunks) decoder.push(chunk)
  return decoder.end()
}
