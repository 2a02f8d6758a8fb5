import type { Converted } from '../../issue.ts'
import type { UIMessage, UIMessageChunk } from './types.ts'
import type { Thread } from '../../document/thread.ts'
import { UIMessageAssembler } from './assemble.ts'
import { fromUIMessages, type FromUIMessagesOptions } from './from-ui-messages.ts'

/** Settings of a `UIStreamDecoder`. */
export interface DecodeUIStreamOptions extends Omit<FromUIMessagesOptions, 'notes'> {
  /**
   * The client's messages before the response. If the last one is from the assistant, the response continues
   * it.
   */
  readonly messages?: readonly UIMessage[]
}

/**
 * Converts a UI message stream to a thread: push chunks as they arrive, read `messages` at any time, and call
 * `end()` for the thread. Chunks that are not represented in the thread are listed in `lost`, with their
 * position in the stream.
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

  /**
   * True once the `finish` chunk was read. If it is still false at the end of the stream, the stream was cut
   * off.
   */
  get isFinished(): boolean {
    return this.#assembler.isFinished
  }

  /** The chat as the client would show it now. */
  get messages(): UIMessage[] {
    return [...this.#before, this.#assembler.message]
  }

  end(): Converted<Thread> {
    const { value, lost } = fromUIMessages(this.messages, {
      // A stream comes from the server, so the thread data in it is trusted unless the options say otherwise.
      carrier: 'trust',
      ...this.#options,
      notes: this.#assembler,
    })
    const losses = this.#assembler.dropped.map(({ index, type, reason }) => ({
      pointer: `/chunks/${index}`,
      reason: `${type}: ${reason}`,
    }))
    return { value, lost: [...losses, ...lost] }
  }
}

/** Converts a whole stream to a thread. */
export function fromUIChunks(
  chunks: Iterable<UIMessageChunk>,
  options?: DecodeUIStreamOptions,
): Converted<Thread> {
  const decoder = new UIStreamDecoder(options)
  for (const chunk of chunks) decoder.push(chunk)
  return decoder.end()
}
