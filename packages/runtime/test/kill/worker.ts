// A runtime under load until it is killed or everything is done.
import { join } from 'node:path'
import { writeSync } from 'node:fs'
import { createRuntime, type EmbeddedRuntime } from '@skein/runtime'
import { decide, EffectsFile, killAgents } from './kill-agents.ts'

const [folder = '', threads = '20', messages = '15', thinkMs = '20'] = process.argv.slice(2)
const effects = new EffectsFile(join(folder, 'effects.txt'))
const runtime = await createRuntime({
  ...killAgents(effects, () => Math.random() * 2 * Number(thinkMs)),
  folder: join(folder, 'data'),
  keepsSecretKeyWithData: true,
  onError: (error) => writeSync(2, `${error instanceof Error ? error.stack : String(error)}\n`),
})
await runtime.start()
writeSync(1, 'ready\n')
await Promise.all(Array.from({ length: Number(threads) }, (_, thread) => talk(runtime, thread)))
await settle(runtime)
await runtime.stop()
writeSync(1, 'done\n')

/** Sends the messages of one thread; what was sent before the last kill is not sent twice. */
async function talk({ threads: api }: EmbeddedRuntime, thread: number): Promise<void> {
  const { id } = await api.create({ agent: 'desk', clientId: `thread-${thread}` })
  for (let number = 0; number < Number(messages); number++) {
    const messageId = `m-${thread}-${number}`
    await api.send(id, { text: messageId, messageId })
    await sleep(Math.random() * 2 * Number(thinkMs))
  }
}

/** Answers what waits for a person until nothing is left to do. */
async function settle({ inbox, store }: EmbeddedRuntime): Promise<void> {
  for (;;) {
    for (const item of await inbox.list()) await decide(inbox, item, effects)
    const heads = await store.list({ limit: 1000 })
    const isBusy = heads.some(
      ({ lifecycle, wakeAt }) =>
        wakeAt !== null || lifecycle === 'running' || lifecycle === 'waiting',
    )
    if (!isBusy) return
    await sleep(10)
  }
}

function sleep(ms: number): Promise<void> {
  return new Promise((resolve) => setTimeout(resolve, ms))
}
