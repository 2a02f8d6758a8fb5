import { isPlainObject } from '@skein/base'

/** An error of a vendor's format with the code that all our errors have; vendors leave it out at times. */
export async function withCode(response: Response): Promise<Response> {
  const { status, headers } = response
  const body: unknown = await response.json()
  if (!isPlainObject(body) || !isPlainObject(body['error'])) return response
  const { code, type } = body['error']
  const error = { ...body['error'], code: code ?? type ?? 'error' }
  return new Response(JSON.stringify({ ...body, error }), { status, headers })
}
