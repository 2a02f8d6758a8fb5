/**
 * Passes requests of the page on to the agents, and their events back as they come. The runtime keeps threads alive
 * for days, which a function of Next.js does not; so it is a process of its own (`skein dev`, `skein serve`), and this
 * route is the entry point: here the session of the user is known, and the key of the application is added.
 */
async function forward(request: Request): Promise<Response> {
  // Pages of others must not use the key. Your own check of the session belongs here, too.
  if (request.headers.get('sec-fetch-site') === 'cross-site')
    return Response.json({ error: 'This page may not call.' }, { status: 403 })
  const { pathname, search } = new URL(request.url)
  const { SKEIN_URL = 'http://127.0.0.1:4111', SKEIN_KEY } = process.env
  const headers = new Headers({ 'content-type': 'application/json' })
  if (SKEIN_KEY) headers.set('authorization', `Bearer ${SKEIN_KEY}`)
  const answer = await fetch(new URL(pathname + search, SKEIN_URL), {
    method: request.method,
    headers,
    body: request.method === 'GET' ? undefined : await request.text(),
    signal: request.signal,
    cache: 'no-store',
  })
  const passed = new Headers({ 'cache-control': 'no-store, no-transform' })
  for (const name of ['content-type', 'x-vercel-ai-ui-message-stream', 'retry-after']) {
    const value = answer.headers.get(name)
    if (value !== null) passed.set(name, value)
  }
  return new Response(answer.body, { status: answer.status, headers: passed })
}

export { forward as GET, forward as POST }
