import { appendFileSync } from 'node:fs'
import { setTimeout as pass } from 'node:timers/promises'
import { says, scripted } from '@skein/ai/testing'
import { deployCheck } from '@skein/evals'
import { createRegistry, defineAgent, readSqliteStore } from '@skein/runtime'

/** A deploy check in a process of its own, which a test kills. Each request leaves a line in a file. */
const [path = '', asked = '', progress = ''] = process.argv.slice(2)
const model = scripted(async () => {
  appendFileSync(asked, 'asked\n')
  await pass(5)
  return says('Hello!')
})
const agent = defineAgent({ name: 'greeter', instructions: 'You greet warmly.', model })
const store = readSqliteStore(path)
const registry = createRegistry({ agents: [agent] })
const report = await deployCheck({ store, registry, last: 1000, progress, concurrency: 2 })
await store.close()
process.stdout.write(JSON.stringify(report))
