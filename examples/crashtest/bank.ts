/**
 * The world of the refund agents here: a bank that pays for each request, and says whether it has paid. `skein crashtest`
 * makes a new one for each crash point.
 */
export default function makeWorld(): (request: Request) => Promise<Response | undefined> {
  const paid: unknown[] = []
  return async (request) => {
    const { host, pathname } = new URL(request.url)
    if (host !== 'bank.test') return undefined
    if (request.method === 'GET') return Response.json({ paid: paid.includes(pathname) })
    paid.push(pathname)
    return Response.json({ paid: true })
  }
}
