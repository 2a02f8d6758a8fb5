/** A JSON answer. Values only have to survive `JSON.stringify`. */
export function jsonResponse(
  value: unknown,
  {
    status = 200,
    headers = {},
  }: { readonly status?: number; readonly headers?: Readonly<Record<string, string>> } = {},
): Response {
  const text = JSON.stringify(value)
  return new Response(text, {
    status,
    headers: { 'content-type': 'application/json; charset=utf-8', ...headers },
  })
}

/** An answer without content. */
export function noContent(): Response {
  return new Response(null, { status: 204 })
}
