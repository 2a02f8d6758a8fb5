import { subscribe } from 'node:diagnostics_channel'
import { writeFileSync } from 'node:fs'
import net from 'node:net'
import { join } from 'node:path'
import { isThisMachine } from './request-pattern.ts'
import type { Preloaded } from './protocol.ts'

/** The code that Node gives a connection that the other machine refuses. */
const REFUSED = 'ECONNREFUSED'

type Connect = (this: net.Socket, ...given: unknown[]) => net.Socket

/**
 * Refuses every connection to another machine, whatever opens it: a database driver, HTTP/2, a client of its own. Notes
 * requests that pass the recorder.
 */
export function guardSockets({ notes, recorder, allowedHosts }: Preloaded): void {
  const sockets = net.Socket.prototype as unknown as { connect: Connect }
  const original = sockets.connect
  sockets.connect = function connect(...given) {
    const target = targetOf(given)
    if (target === undefined || isThisMachine(target.host) || allowedHosts.includes(target.host))
      return original.apply(this, given)
    const name = `${target.host}:${target.port}`
    note(notes, 'refused', name)
    const error = Object.assign(
      new Error(`skein crashtest refuses the connection to ${name}: nothing leaves this machine.`),
      { code: REFUSED },
    )
    process.nextTick(() => this.destroy(error))
    return this
  }
  subscribe('undici:request:create', (message) => {
    const { request } = message as { readonly request: { origin?: string; path?: string } }
    const origin = String(request.origin)
    if (origin !== recorder && !origin.startsWith('data:')) note(notes, 'unseen', origin)
  })
}

/** Undefined for a socket of the file system. */
function targetOf(given: readonly unknown[]): { host: string; port: string } | undefined {
  // `net.connect` passes its arguments as one list.
  const [first, second] = (Array.isArray(given[0]) ? given[0] : given) as readonly unknown[]
  if (typeof first === 'object' && first !== null) {
    const { host, port, path } = first as { host?: string; port?: unknown; path?: unknown }
    return port === undefined && typeof path === 'string'
      ? undefined
      : { host: host ?? '', port: String(port) }
  }
  if (typeof first === 'string' && Number.isNaN(Number(first))) return undefined
  return { host: typeof second === 'string' ? second : '', port: String(first) }
}

function note(notes: string, kind: string, text: string): void {
  writeFileSync(join(notes, kind, encodeURIComponent(text)), '')
}
