/**
 * What would new definitions do to the threads that exist? Each thread is replayed; only changed requests are sent, and
 * no tool runs. `skein check ./next --replay .skein` does the same.
 *
 * Prints:
 *
 *     3 threads: 2 the same, 1 differ, 0 not checked.
 *          1  instructions changed: instructions of waiter
 *     2 requests answered from recordings, 1 sent
 */

// #region check
import { says, scripted } from '@skein/ai/testing'
import { deployCheck, deployText } from '@skein/evals'
import { createRegistry, createRuntime, defineAgent, memoryStore } from '@skein/runtime'

const agents = (waiter: string) => [
  defineAgent({ name: 'waiter', instructions: waiter, model: scripted(() => says('Welcome.')) }),
  defineAgent({ name: 'cook', instructions: 'You cook.', model: scripted(() => says('Soup.')) }),
]

const store = memoryStore()
const runtime = await createRuntime({ agents: agents('You serve.'), store })
await runtime.start()
for (const agent of ['waiter', 'cook', 'cook']) {
  const { id } = await runtime.threads.create({ agent })
  await runtime.threads.run(id, 'Hello')
}

const next = createRegistry({ agents: agents('You serve guests.') })
const report = await deployCheck({ store, registry: next, last: 1000, maxRequests: 500 })
// #endregion check
const [first = '', group = '', last = ''] = deployText(report).split('\n')
console.log(first)
console.log(group.replace(/ \(.*/, ''))
console.log(last.replace(/ sent.*/, ' sent'))
await runtime.stop()
