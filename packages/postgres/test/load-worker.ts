/**
 * A node of the kill tests, in a process of its own: a runtime on PostgreSQL with an HTTP server, one of several.
 * Its agents are those of `kill-agents.ts`. It says when it has loaded everything, gets its settings and starts.
 * It sends its errors to its parent.
 */
import { once } from 'node:events'
import { postgresLink, postgresStore, queueDispatcher } from '@skein/postgres'
import { createRuntime, memoryGovernanceKeys, type RuntimeOptions } from '@skein/runtime'
import { serve } from '@skein/server'
import { EffectsFile, killAgents } from '../../runtime/test/kill/kill-agents.ts'
import type { NodeSettings } from './load.ts'

process.once('disconnect', () => process.exit(1))
process.send?.({ isLoaded: true })
const [settings] = (await once(process, 'message')) as [NodeSettings]
const { databaseUrl, owner, port, thinkMs, toolMs } = settings

async function dispatcherOf({
  dispatcher: wanted,
}: NodeSettings): Promise<RuntimeOptions['dispatcher']> {
  if (wanted === undefined) return undefined
  if (wanted === 'queue') return queueDispatcher({ connectionString: databaseUrl })
  const made = (await import(wanted.module)) as {
    readonly dispatcher: (options: unknown) => RuntimeOptions['dispatcher']
  }
  return made.dispatcher(wanted.options)
}

const runtime = await createRuntime({
  ...killAgents(
    new EffectsFile(settings.effects),
    () => Math.random() * 2 * thinkMs,
    toolMs === undefined ? undefined : () => toolMs,
  ),
  store: await postgresStore({ connectionString: databaseUrl }),
  dispatcher: await dispatcherOf(settings),
  owner,
  secretKey: Buffer.alloc(32, 7),
  keys: memoryGovernanceKeys({ seed: 'load' }),
  nodes: {
    link: postgresLink({ connectionString: databaseUrl }),
    address: `http://127.0.0.1:${port}`,
    secret: 'the-secret-of-the-nodes-of-this-test',
    name: owner,
  },
  onError: (error) => process.connected && process.send?.({ error: String(error) }),
})
await runtime.start()
await serve(runtime, {
  port,
  auth: 'none',
  limits: { requestsPerMinute: 1e6, requestsPerMinutePerAddress: 1e6 },
})
process.on('message', async () => {
  await runtime.stop({ graceMs: 3_000 })
  process.exit(0)
})
process.send?.({ isReady: true })
