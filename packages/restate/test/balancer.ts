import { once } from 'node:events'
import {
  type ClientHttp2Session,
  connect,
  createServer,
  type IncomingHttpHeaders,
  type ServerHttp2Stream,
} from 'node:http2'

/** A load balancer for HTTP/2, as operators run one in front of several nodes. */
export interface Balancer {
  readonly url: string
  /** How many requests each node got, by its address. */
  readonly counts: ReadonlyMap<string, number>
  /** Gives requests to this node from now on. */
  add(url: string): void
  /** Gives no more requests to this node, and cuts its connections, as a failed health check does. */
  remove(url: string): void
  stop(): Promise<void>
}

/** Starts a balancer that gives each request to the next node that takes connections. */
export async function startBalancer(port = 0): Promise<Balancer> {
  const nodes: string[] = []
  const sessions = new Map<string, ClientHttp2Session>()
  const counts = new Map<string, number>()
  let turn = 0

  const sessionOf = async (url: string): Promise<ClientHttp2Session> => {
    const known = sessions.get(url)
    if (known && !known.closed && !known.destroyed) return known
    const session = connect(url)
    session.on('error', () => session.destroy())
    await once(session, 'connect')
    sessions.set(url, session)
    return session
  }

  const forward = async (
    stream: ServerHttp2Stream,
    headers: IncomingHttpHeaders,
  ): Promise<void> => {
    // Whoever asked may be gone while a node is looked for.
    stream.on('error', () => {})
    for (let tries = 0; tries < nodes.length; tries++) {
      const url = nodes[turn++ % nodes.length]!
      const session = await sessionOf(url).catch(() => undefined)
      if (stream.destroyed || stream.closed) return
      if (!session || session.closed || session.destroyed) continue
      counts.set(url, (counts.get(url) ?? 0) + 1)
      const { ':authority': _, ...rest } = headers
      const upstream = session.request(rest)
      upstream.on('response', (response) => {
        if (!stream.destroyed && !stream.closed && !stream.headersSent) stream.respond(response)
      })
      const cut = (): void => void (stream.destroyed || stream.destroy())
      upstream.on('error', cut)
      upstream.on('close', () => (upstream.rstCode === 0 ? undefined : cut()))
      stream.on('error', () => upstream.destroy())
      stream.on('close', () => upstream.close())
      stream.pipe(upstream)
      upstream.pipe(stream)
      return
    }
    if (stream.destroyed || stream.closed) return
    stream.respond({ ':status': 503 })
    stream.end()
  }

  const open = new Set<{ destroy(): void }>()
  const server = createServer()
  server.on('session', (session) => {
    open.add(session)
    session.once('close', () => open.delete(session))
  })
  server.on('stream', (stream, headers) => void forward(stream, headers))
  server.on('sessionError', () => {})
  server.listen(port, '127.0.0.1')
  await once(server, 'listening')
  const { port: actual } = server.address() as { port: number }
  return {
    url: `http://127.0.0.1:${actual}`,
    counts,
    add: (url) => void nodes.push(url),
    remove(url) {
      const index = nodes.indexOf(url)
      if (index >= 0) nodes.splice(index, 1)
      sessions.get(url)?.destroy()
      sessions.delete(url)
    },
    async stop() {
      for (const session of [...sessions.values(), ...open]) session.destroy()
      server.close()
      await once(server, 'close')
    },
  }
}
