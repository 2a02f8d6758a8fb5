import type { WireReply } from './answer-wire.ts'

/**
 * The reply as a `Response`. A stream is written as fast as its reader takes it; a reader who
 * leaves is `abandoned`. `done` is called once, whatever the end.
 */
export function toResponse(reply: WireReply, abandoned: () => void, done: () => void): Response {
  const { status, headers, body } = reply
  if (typeof body === 'string') {
    done()
    return new Response(body, { status, headers })
  }
  const encoder = new TextEncoder()
  const stream = new ReadableStream<Uint8Array>({
    async pull(controller) {
      for (;;) {
        const { done: isOver, value } = await body.next()
        if (isOver) {
          done()
          return controller.close()
        }
        if (value !== '') return controller.enqueue(encoder.encode(value))
      }
    },
    async cancel() {
      abandoned()
      done()
      await body.return()
    },
  })
  return new Response(stream, { status, headers })
}
