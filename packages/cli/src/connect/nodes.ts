import { hostname } from 'node:os'
import type { RuntimeOptions } from '@skein/runtime'
import type { SafeSettings } from '../config/refusals.ts'
import type { SkeinConfig } from '../config/config.ts'
import { optionalPackage } from './optional-package.ts'
import type { PostgresPackage } from './stores.ts'

/** Returns the options with which this node works together with others; undefined if it works alone. */
export async function createNodes({
  store,
  nodeSecret: secret,
  config,
}: SafeSettings): Promise<RuntimeOptions['nodes']> {
  if (store.type === 'sqlite' || secret === undefined) return undefined
  const { postgresLink } = await optionalPackage<PostgresPackage>('@skein/postgres', 'store')
  const link = postgresLink({ connectionString: config.storeDirect ?? store.connectionString })
  return { link, secret, address: nodeAddress(config) }
}
/** Returns the address of this node; `{hostname}` in it is the name of this machine or container. */
export function nodeAddress({ nodeAddress: address }: SkeinConfig): string | undefined {
  return address?.replace('{hostname}', hostname())
}
interface RestatePackage {
  restateDispatcher(options: object): RuntimeOptions['dispatcher']
}

/** Returns the dispatcher of another engine; undefined for the one of this process. */
export async function createDispatcher(
  settings: SafeSettings,
): Promise<RuntimeOptions['dispatcher']> {
  const { engine, store, config } = settings
  if (engine === 'local' || store.type === 'sqlite') return undefined
  if (engine === 'queue') {
    const { queueDispatcher } = await optionalPackage<PostgresPackage>('@skein/postgres', 'engine')
    const connectionString = config.storeDirect ?? store.connectionString
    return queueDispatcher({ connectionString })
  }
  const { restateDispatcher } = await optionalPackage<RestatePackage>('@skein/restate', 'engine')
  return restateDispatcher({
    ingressUrl: config.restateIngress,
    adminUrl: config.restateAdmin,
    address: config.restateAddress,
    listen: { port: config.restatePort ?? 9080, host: settings.host },
  })
}
