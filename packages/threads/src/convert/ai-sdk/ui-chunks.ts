import { SseDecoder } from '@skein/base'
import { ThreadError } from '../../issue.ts'
import type { UIMessageChunk } from './types.ts'

/**
 * The response headers that the AI SDK sends. Its client checks none of them, but proxies and other clients
 * do.
 */
export const UI_STREAM_HEADERS: Readonly<Record<string, string>> = {
  'content-type': 'text/event-stream',
  'cache-control': 'no-cache',
  connection: 'keep-alive',
  'x-vercel-ai-ui-message-stream': 'v1',
  'x-accel-buffering': 'no',
}

/** The last event of every stream. */
export const UI_STREAM_DONE = 'data: [DONE]\n\n'

/** Encodes one chunk as a server-sent event. */
export function encodeUIChunk(chunk: UIMessageChunk): string {
  return `data: ${JSON.stringify(chunk)}\n\n`
}

/** Decodes the bytes of a UI message stream: `push` returns the chunks that the next bytes complete. */
export class UIChunkReader {
  readonly #sse = new SseDecoder()
  /** True once `[DONE]` was read. */
  isDone = false

  push(bytes: Uint8Array): UIMessageChunk[] {
    const chunks: UIMessageChunk[] = []
    for (const { data } of this.#sse.push(bytes)) {
      if (data === '[DONE]') this.isDone = true
      else chunks.push(parseChunk(data))
    }
    return chunks
  }
}

/** Decodes all chunks of a stream that is available as text. */
export function decodeUIStream(text: string): UIMessageChunk[] {
  return new UIChunkReader().push(new TextEncoder().encode(`${text}\n\n`))
}

function parseChunk(data: string): UIMessageChunk {
  try {
    const chunk: unknown = JSON.parse(data)
    if (typeof (chunk as UIMessageChunk | null)?.type === 'string') return chunk as UIMessageChunk
  } catch {
    // Invalid JSON is reported below, together with JSON that is not a chunk.
  }
  throw new ThreadError('The UI message stream has an event that is no JSON chunk.', {
    code: 'UI_CHUNK_INVALID',
    hint: 'Each data line is one JSON object with a type, or [DONE].',
  })
}
