/**
 * How many recorded threads of 20 steps play back in a minute, and whether the memory stays flat.
 *
 *     node --expose-gc --conditions=@skein/source bench/evals/play-back.ts --threads 1000
 */
import { parseArgs } from 'node:util'
import { calls, says, scripted } from '@skein/ai/testing'
import { playBack, readRecording } from '@skein/evals'
import { createRegistry, createRuntime, defineAgent, defineTool, memoryStore } from '@skein/runtime'

const { values } = parseArgs({ options: { threads: { type: 'string', default: '1000' } } })
const count = Number(values.threads)
const STEPS = 20

const look = defineTool({
  name: 'look',
  description: 'Looks.',
  risk: 'read_only',
  execute: () => ({ seen: 1 }),
})
const model = scripted(({ messages }) =>
  messages.filter(({ type }) => type === 'assistant').length < STEPS - 1
    ? calls('look')
    : says('Done.'),
)
const agent = defineAgent({ name: 'looker', instructions: 'You look.', model, tools: [look] })
const registry = createRegistry({ agents: [agent] })
const store = memoryStore()
const runtime = await createRuntime({ registry, store })
await runtime.start()
const { id } = await runtime.threads.create({ agent: 'looker' })
await runtime.threads.run(id, 'Look around')
const recorded = await readRecording(store, id)
await runtime.stop()

const heapMb = (): number => {
  globalThis.gc?.()
  return Math.round(process.memoryUsage().heapUsed / 1e6)
}
await playBack(recorded, { registry })
const before = heapMb()
const startedAt = performance.now()
const busyAt = process.cpuUsage()
for (let index = 0; index < count; index++) {
  const { isSame, difference } = await playBack(recorded, { registry })
  if (!isSame) throw new Error(difference?.message)
}
const seconds = (performance.now() - startedAt) / 1000
const { user, system } = process.cpuUsage(busyAt)
const busySeconds = (user + system) / 1e6
console.log({
  threads: count,
  steps: recorded.requests.length,
  seconds: Math.round(seconds * 10) / 10,
  threadsPerMinute: Math.round((count / seconds) * 60),
  // On a machine that does other work too, the time of the processor says more.
  threadsPerMinuteOfOneCore: Math.round((count / busySeconds) * 60),
  heapMb: { before, after: heapMb() },
})
