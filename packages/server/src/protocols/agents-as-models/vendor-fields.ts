import { isPlainObject } from '@skein/base'

/** The tag of the operations that speak the formats of vendors. */
export const COMPATIBLE = 'compatible'

/**
 * Completes an error so that clients of OpenAI and of Anthropic can read it. Errors of the gateway have the
 * form of the vendor, but not always a code. Errors of the server before the gateway (a wrong key, an invalid
 * body) have our form, without the `type` by which clients choose their exception.
 */
export async function withVendorFields(response: Response): Promise<Response> {
  if (response.ok) return response
  const { status, headers } = response
  const body: unknown = await response.json()
  if (!isPlainObject(body) || !isPlainObject(body['error']))
    return new Response(JSON.stringify(body), { status, headers })
  const { code, type } = body['error']
  const error = { ...body['error'], code: code ?? type ?? 'error', type: type ?? kindOf(status) }
  const outer = type === undefined ? { type: 'error' } : {}
  return new Response(JSON.stringify({ ...outer, ...body, error }), { status, headers })
}

/** The kinds of errors that OpenAI and Anthropic have in common, by status. */
function kindOf(status: number): string {
  return KINDS[status] ?? (status < 500 ? 'invalid_request_error' : 'api_error')
}

const KINDS: Readonly<Record<number, string>> = {
  401: 'authentication_error',
  403: 'permission_error',
  404: 'not_found_error',
  413: 'request_too_large',
  429: 'rate_limit_error',
}
