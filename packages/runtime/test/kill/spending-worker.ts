// Threads of one tenant that spend, until the process is killed or the limit of the period is reached.
import { appendFileSync, writeSync } from 'node:fs'
import { join } from 'node:path'
import { says, scripted, waits } from '@skein/ai/testing'
import {
  createRuntime,
  defineAgent,
  defineModel,
  definePrompt,
  type ThreadHead,
} from '@skein/runtime'

const [folder = '', threads = '12', messages = '20', maxInferences = '150'] = process.argv.slice(2)
const model = defineModel({
  name: 'm',
  model: scripted(() => {
    // One line for each request that reaches the vendor, in a file that no kill can take back.
    appendFileSync(join(folder, 'asked.txt'), 'asked\n')
    return [waits(Math.random() * 20), says('Hi.')]
  }),
  inputPrice: 1,
  outputPrice: 1,
})
const prompt = definePrompt({ name: 'p', prompt: 'Hi.', model })
const WEEK_MS = 7 * 24 * 3_600_000
const runtime = await createRuntime({
  agents: [defineAgent({ name: 'solo', sideA: { prompt } })],
  folder: join(folder, 'data'),
  keepsSecretKeyWithData: true,
  spending: [
    {
      per: 'tenant',
      periodMs: WEEK_MS,
      maxInferences: Number(maxInferences),
      newMessages: 'queue',
    },
  ],
  onError: (error) => writeSync(2, `${error instanceof Error ? error.stack : String(error)}\n`),
})
await runtime.start()
writeSync(1, 'ready\n')
await Promise.all(
  Array.from({ length: Number(threads) }, async (_, thread) => {
    const clientId = `thread-${thread}`
    const { id } = await runtime.threads.create({ agent: 'solo', tenant: 'acme', clientId })
    for (let number = 0; number < Number(messages); number++) {
      const messageId = `m-${thread}-${number}`
      await runtime.threads.send(id, { text: messageId, messageId })
      // The next message is sent after the answer, so that each has an inference of its own.
      while (!isAtRest(await runtime.store.head(id))) await sleep(2)
    }
  }),
)
for (;;) {
  const heads = await runtime.store.list({ limit: 1000 })
  if (heads.every(isAtRest)) break
  await sleep(10)
}
await runtime.stop()
writeSync(1, 'done\n')

function isAtRest(head: ThreadHead | undefined): boolean {
  return head?.lifecycle === 'idle' || head?.lifecycle === 'waiting'
}

function sleep(ms: number): Promise<void> {
  return new Promise((resolve) => setTimeout(resolve, ms))
}
