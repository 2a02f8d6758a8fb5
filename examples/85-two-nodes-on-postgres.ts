/**
 * Two nodes share a PostgreSQL database. A thread that one has begun continues at the other, without a restart.
 * Set DATABASE_URL to use a server of your own.
 *
 * Prints:
 *
 *     node 1: Hello Ada.
 *     node 2: You are Ada.
 *     2 sessions in one log, written by 2 nodes
 */

// #region program
import { randomBytes } from 'node:crypto'
import { says, scripted } from '@skein/ai/testing'
import { postgresStore } from '@skein/postgres'
import { createRuntime, defineAgent, memoryGovernanceKeys } from '@skein/runtime'
import { database } from './postgres-database.ts'

const model = scripted((request) =>
  says(request.messages.length === 1 ? 'Hello Ada.' : 'You are Ada.'),
)
const greeter = defineAgent({ name: 'greeter', instructions: 'You remember names.', model })

const { url, stop } = await database()
const secretKey = randomBytes(32) // the same at every node, from the environment
const keys = memoryGovernanceKeys({ seed: 'example' }) // likewise
const schema = `example_${randomBytes(4).toString('hex')}` // `skein` if you leave it out

async function node(name: string) {
  const store = await postgresStore({ connectionString: url, schema })
  const runtime = await createRuntime({
    agents: [greeter],
    store,
    secretKey,
    keys,
    owner: `${name} ${randomBytes(8).toString('hex')}`,
  })
  await runtime.start()
  return runtime
}

const [first, second] = [await node('node 1'), await node('node 2')]
const { id } = await first.threads.create({ agent: 'greeter' })
console.log('node 1:', (await first.threads.run(id, 'I am Ada.')).text)
console.log('node 2:', (await second.threads.run(id, 'Who am I?')).text)

const events = await first.threads.events(id)
const sessions = events.filter(({ event }) => event.type === 'session_end')
console.log(`${sessions.length} sessions in one log, written by 2 nodes`)
await first.stop()
await second.stop()
// #endregion program
await stop()
