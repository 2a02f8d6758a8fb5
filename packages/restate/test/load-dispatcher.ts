/** The dispatchers of nodes in kill tests: see `NodeSettings.dispatcher`. */
import { queueDispatcher } from '@skein/postgres'
import { restateDispatcher, type RestateDispatcherOptions } from '@skein/restate'
import type { RuntimeOptions } from '@skein/runtime'

/** Restate with these options, or the queue in the database. */
export type EngineSettings =
  | { readonly engine: 'restate'; readonly restate: RestateDispatcherOptions }
  | { readonly engine: 'queue' }

export function dispatcher(
  settings: EngineSettings,
  { databaseUrl }: { readonly databaseUrl: string },
): RuntimeOptions['dispatcher'] {
  return settings.engine === 'queue'
    ? queueDispatcher({ connectionString: databaseUrl })
    : restateDispatcher(settings.restate)
}
