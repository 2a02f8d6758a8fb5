/** The dispatcher of nodes in kill tests: see `NodeSettings.dispatcher`. */
import { restateDispatcher, type RestateDispatcherOptions } from '@skein/restate'
import type { RuntimeOptions } from '@skein/runtime'
import type { NodeSettings } from '../../postgres/test/load.ts'
import type { Balancer } from './balancer.ts'
import type { RestateServer } from './server.ts'

/** Called in the process of the node. */
export function dispatcher(options: RestateDispatcherOptions): RuntimeOptions['dispatcher'] {
  return restateDispatcher(options)
}

/** Makes the settings of a node that listens on this port, and gives it to the balancer. */
export function loadDispatcher({
  restate: { ingressUrl, adminUrl },
  balancer,
  port,
  serviceName,
}: {
  readonly restate: RestateServer
  readonly balancer: Balancer
  readonly port: number
  readonly serviceName?: string
}): NodeSettings['dispatcher'] {
  balancer.add(`http://127.0.0.1:${port}`)
  const shared = { ingressUrl, adminUrl, address: balancer.url, startMs: 60_000 }
  const options: RestateDispatcherOptions = {
    ...shared,
    listen: { port },
    ...(serviceName !== undefined && { serviceName }),
  }
  return { module: import.meta.filename, options }
}
