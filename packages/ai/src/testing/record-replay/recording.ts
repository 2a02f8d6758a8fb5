import { SkeinError } from '@skein/base'

/** HTTP traffic as plain data, to be kept in a file and read by people. */
export interface Recording {
  readonly version: 1
  /** In the order in which the requests were sent. */
  readonly exchanges: readonly Exchange[]
}

export interface Exchange {
  readonly request: RecordedRequest
  readonly response: RecordedResponse
}

export interface RecordedRequest {
  readonly method: string
  readonly url: string
  /** Names in lower case, sorted; secrets are replaced. */
  readonly headers: Readonly<Record<string, string>>
  /** A text, the parts of a form, or bytes; absent when there was none. */
  readonly body?: RecordedBody
}

export type RecordedBody =
  | { readonly text: string }
  | { readonly base64: string }
  | { readonly form: readonly (readonly [name: string, value: RecordedPart])[] }

export type RecordedPart =
  string | { readonly filename: string; readonly type: string; readonly base64: string }

export interface RecordedResponse {
  readonly status: number
  readonly headers: Readonly<Record<string, string>>
  /** The body as it came, one entry per network read. */
  readonly chunks: readonly RecordedChunk[]
  /** How it ended, if not well: the connection broke, or the reader left. */
  readonly end?: 'failed' | 'left'
}

/** Text where the bytes are whole characters, else base64. */
export type RecordedChunk = { readonly text: string } | { readonly base64: string }

/** Where a recording is kept. */
export interface RecordingStore {
  load(): Promise<Recording | undefined>
  save(recording: Recording): Promise<void>
}

/** Keeps a recording in memory. */
export function memoryStore(recording?: Recording): RecordingStore {
  let kept = recording
  return {
    load: async () => kept,
    async save(changed) {
      kept = changed
    },
  }
}

/** A request that the recording does not hold, or a recording that is none. */
export class RecordingError extends SkeinError {
  constructor(message: string, options: { code: string; hint?: string; cause?: unknown }) {
    super(message, options)
  }
}
