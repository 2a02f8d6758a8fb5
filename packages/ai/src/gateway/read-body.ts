import type { JsonValue } from '@skein/base'
import { gatewayError } from './gateway-error.ts'

/** The JSON body of a request, read no further than the limit. */
export async function readJsonBody(
  request: Request,
  maxBytes: number,
  signal: AbortSignal,
): Promise<JsonValue> {
  if (Number(request.headers.get('content-length') ?? 0) > maxBytes) throw tooLarge(maxBytes)
  const text = await readText(request, maxBytes, signal)
  try {
    return JSON.parse(text) as JsonValue // JSON.parse gives JSON
  } catch (cause) {
    throw gatewayError('The body is not JSON.', 'InvalidRequest', { statusCode: 400, cause })
  }
}

async function readText(request: Request, maxBytes: number, signal: AbortSignal): Promise<string> {
  if (!request.body) return ''
  const reader = request.body.getReader()
  const leave = (): void => void reader.cancel().catch(() => {})
  signal.addEventListener('abort', leave, { once: true })
  const decoder = new TextDecoder()
  const texts: string[] = []
  let length = 0
  try {
    for (;;) {
      const { done, value } = await reader.read()
      if (done) return texts.join('') + decoder.decode()
      length += value.length
      if (length > maxBytes) throw tooLarge(maxBytes)
      texts.push(decoder.decode(value, { stream: true }))
    }
  } catch (error) {
    leave()
    throw error
  } finally {
    signal.removeEventListener('abort', leave)
  }
}

function tooLarge(maxBytes: number): Error {
  const message = `The body is larger than ${maxBytes} bytes.`
  return gatewayError(message, 'InvalidRequest', { statusCode: 413 })
}
