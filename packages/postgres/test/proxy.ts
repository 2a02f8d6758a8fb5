import { connect, createServer, type Socket } from 'node:net'

/** What the proxy does with the bytes that contain the next COMMIT of a client. */
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
  /** How many faults have happened. */
  readonly faults: () => number
  /** Cuts all connections. */
  cutAll(): void
  stop(): Promise<void>
}

/** The simple query COMMIT, as pg sends it. */
const COMMIT = Buffer.from('COMMIT\0')

export async function startProxy(url: string): Promise<CuttingProxy> {
  const target = new URL(url)
  const port = Number(target.port)
  const sockets = new Set<Socket>()
  let fault: CommitFault | undefined
  let faults = 0
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
      if (fault === undefined || !data.includes(COMMIT)) return void upstream.write(data)
      const now = fault
      fault = undefined
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
    atCommit(next) {
      fault = next
    },
    faults: () => faults,
    cutAll,
    stop: () =>
      new Promise((resolve) => {
        server.close(() => resolve())
        cutAll()
      }),
  }
}
