import type { JsonObject } from '@skein/base'
import type { Gateway } from '@skein/ai/gateway'

/** Sends a body to a gateway without a socket. */
export function post(
  handler: Gateway,
  path: string,
  body: object,
  headers: Record<string, string> = {},
): Promise<Response> {
  const init = { method: 'POST', body: JSON.stringify(body), headers }
  return handler(new Request(`http://gateway.test${path}`, init))
}

export const hi: readonly JsonObject[] = [{ role: 'user', content: 'Hi' }]
