import { connect, createServer, type Socket } from 'node:net'

/** What the proxy does with the bytes that contain the next COMMIT (or ROLLBACK) of a client. */
export type CommitFault =
  /** Hands it to the server, and cuts the client off before the answer. */
  | 'cut after'
  /** Cuts both off; the server never sees it. */
  | 'cut before'
  /** Cuts the client off, and hands it to the server half a second later. */
  | 'cut, then late'

/** A proxy in front of a PostgreSQL server that breaks connections at chosen moments. */
export interface CuttingProxy {
  readonly url: string
  /** Sets what happens to the next COMMIT. */
  atCommit(fault: CommitFault): void
  /** Sets what happens to the next ROLLBACK. */
  atRollback(fault: CommitFault): void
  /** Keeps the next bytes of a client that contain this text from the server. Resolves when there were some. */
  holdBack(text: string): Promise<void>
  /** How many faults have happened. */
  readonly faults: () => number
  /** Cuts all connections. */
  cutAll(): void
  stop(): Promise<void>
}

/** A simple query, as pg sends it. */
const COMMIT = Buffer.from('COMMIT\0')
const ROLLBACK = Buffer.from('ROLLBACK\0')

export async function startProxy(url: string): Promise<CuttingProxy> {
  const target = new URL(url)
  const port = Number(target.port)
  const sockets = new Set<Socket>()
  const planned = new Map<Buffer, CommitFault>()
  let faults = 0
  let held: { readonly text: string; readonly seen: () => void } | undefined
  const server = createServer((client) => {
    const upstream = connect(port, target.hostname)
    for (const socket of [client, upstream]) {
      sockets.add(socket)
      socket.setNoDelay(true)
      socket.on('error', () => {})
      socket.on('close', () => sockets.delete(socket))
    }
    upstream.on('data', (data) => client.write(data))
    upstream.on('close', () => client.destroy())
    client.on('close', () => !isLate && upstream.destroy())
    let isLate = false
    client.on('data', (data) => {
      if (held && data.includes(held.text)) {
        held.seen()
        held = undefined
        return
      }
      const statement = [...planned.keys()].find((bytes) => data.includes(bytes))
      if (!statement) return void upstream.write(data)
      const now = planned.get(statement)
      planned.delete(statement)
      faults += 1
      if (now === 'cut before') {
        upstream.destroy()
        client.destroy()
        return
      }
      isLate = true
      client.destroy()
      const send = (): void => {
        upstream.write(data)
        setTimeout(() => upstream.destroy(), 500).unref()
      }
      if (now === 'cut after') send()
      else setTimeout(send, 500)
    })
  })
  await new Promise<void>((resolve) => server.listen(0, '127.0.0.1', resolve))
  const address = server.address()
  target.port = String(typeof address === 'object' && address ? address.port : 0)
  const cutAll = (): void => {
    for (const socket of sockets) socket.destroy()
  }
  return {
    url: target.href,
    atCommit: (fault) => void planned.set(COMMIT, fault),
    atRollback: (fault) => void planned.set(ROLLBACK, fault),
    holdBack: (text) => new Promise((seen) => (held = { text, seen })),
    faults: () => faults,
    cutAll,
    stop: () =>
      new Promise((resolve) => {
        server.close(() => resolve())
        cutAll()
      }),
  }
}
