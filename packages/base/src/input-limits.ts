/**
 * The limits for data from outside: from models, vendors and tools. This table holds all their defaults; each
 * can be changed where the data enters (`config` of `llm`, `limits` of the runtime).
 */
export interface InputLimits {
  /** Bytes of one response body, streamed or not. Default 64 MiB. */
  readonly maxResponseBytes: number
  /** Bytes that are read of the body of a failed response; the rest is dropped. Default 256 KiB. */
  readonly maxErrorBytes: number
  /** Events of one streamed response. Default 1,000,000. */
  readonly maxEvents: number
  /** UTF-8 bytes of text, reasoning and arguments in one message. Default 4 MiB. */
  readonly maxMessageBytes: number
  /** Tool calls in one message of a model. Default 128. */
  readonly maxToolCalls: number
  /**
   * Bytes of one tool result, or of the text of its error, that a model is shown. Of a larger result it sees the
   * beginning and the end; `toolExecutions` keep the whole, and the runtime stores it in a file of the thread.
   * Default 256 KiB.
   */
  readonly maxToolResultBytes: number
}

/** The default limits for data from outside. */
export const defaultInputLimits: InputLimits = {
  maxResponseBytes: 64 * 1024 * 1024,
  maxErrorBytes: 256 * 1024,
  maxEvents: 1_000_000,
  maxMessageBytes: 4 * 1024 * 1024,
  maxToolCalls: 128,
  maxToolResultBytes: 256 * 1024,
}
