/**
 * Writes `threads-v<version>.sql`: a database with threads parked in every state, as this version of the
 * program leaves it when its process is killed. Run it once per version, before that is released, and never
 * again for the same one:
 *
 *     node --conditions=@skein/source packages/runtime/test/upgrade/write-fixture.ts
 */
import { existsSync, mkdtempSync, writeFileSync } from 'node:fs'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { DatabaseSync } from 'node:sqlite'
import { manualClock, sequentialIds } from '@skein/base'
import { EVENT_VERSION } from '../../src/contract/event.ts'
import { createRuntime } from '../../src/runtime.ts'
import type { RuntimeOptions } from '../../src/runtime-options.ts'
import { memoryGovernanceKeys } from '../../src/governance/governance-keys.ts'
import { sqliteStore } from '../../src/store/sqlite/sqlite-store.ts'
import { manualTimers } from '../../src/testing/simulation.ts'
import { parkedAgents, type World } from './parked-agents.ts'
import { DOOR_KEY, KEYS_SEED, SECRET_KEY, WRITTEN_AT } from './parked-installation.ts'
import { sqlDump } from './sql-dump.ts'

const target = join(import.meta.dirname, `threads-v${EVENT_VERSION}.sql`)
if (existsSync(target) && !process.argv.includes('--again'))
  throw new Error(`${target} is there already. What was released stays as it was written.`)

const folder = mkdtempSync(join(tmpdir(), 'skein-fixture-'))
const store = sqliteStore({ path: join(folder, 'skein.db') })
const clock = manualClock(WRITTEN_AT)
const world: World = { done: [] }
const options: RuntimeOptions = {
  ...parkedAgents(world),
  store,
  clock,
  timers: manualTimers(clock),
  ids: sequentialIds('id-'),
  keys: memoryGovernanceKeys({ seed: KEYS_SEED }),
  secretKey: SECRET_KEY,
  onError: (error) => console.error(error),
}
const runtime = await createRuntime(options)
const { threads } = runtime
await runtime.start()

async function create(clientId: string, agent = 'clerk'): Promise<string> {
  return (await threads.create({ agent, clientId, title: `Parked: ${clientId}` })).id
}

/** Sends, and sees that it came to what it is for. */
async function park(clientId: string, message: string, outcome: string): Promise<string> {
  const id = await create(clientId)
  const result = await threads.run(id, message)
  if (result.outcome !== outcome) throw new Error(`${clientId} is ${result.outcome}`)
  return id
}

await park('approval', 'call refund {"order":"O-1"}', 'waiting')
await park('input', 'call ask_person {"question":"Tea?"}', 'waiting')
await park('child', 'call helper {"message":"call refund {\\"order\\":\\"O-2\\"}"}', 'waiting')
await park('idle', 'call note {"text":"a file and a value"}', 'completed')
await park('failed', 'call give_up {"why":"no luck"}', 'failed')
const creation = { agent: 'courier', name: 'Ada', message: 'call count_key {}' }
await park('variables', `call subagent_create ${JSON.stringify(creation)}`, 'completed')
await threads.stop(await park('stopped', 'call ask_person {"question":"Coffee?"}', 'waiting'))
await threads.terminate(await park('terminated', 'hello', 'completed'))
await threads.erase(await park('erased', 'hello', 'completed'))
await threads.effects.schedule(await create('effect'), 'remind', { of: 'milk' }, 60_000)
await threads.effects.schedule(
  await create('cron'),
  'remind',
  { of: 'bread' },
  { cron: '0 9 * * *' },
)
await threads.create({ agent: 'porter', clientId: 'secret', secrets: { DOOR_KEY } })
await threads.send(await create('immediate', 'keeper'), 'good morning')
await runtime.idle()

world.isDown = true
await threads.send(await create('retry'), 'hello')
await runtime.idle()
world.isDown = false

// From here on nothing that begins comes to its end: the process dies in the middle of it.
const begun = new Set<string>()
const reached = new Promise<void>((resolve) => {
  world.during = async (what) => {
    if (begun.add(what).size === 4) resolve()
    await new Promise(() => {})
  }
})
const doubt = await create('doubt-read')
await threads.send(doubt, 'call look {"at":"the door"}')
await threads.send(await create('doubt-write'), 'call note {"text":"half done"}')
const refund = await park('doubt-refund', 'call refund {"order":"O-3"}', 'waiting')
const [item] = await runtime.inbox.list({ rootId: refund })
await runtime.inbox.approve({ threadId: refund, interruptId: item!.interruptId, by: 'pat' })
await threads.send(await create('doubt-model'), 'think')
await reached
await threads.send(doubt, 'and then hello')
// One that is not started: its mail is for whoever comes next.
const later = await createRuntime(options)
await later.threads.create({ agent: 'clerk', clientId: 'mail', message: 'hello from before' })

await store.backup(join(folder, 'copy.db'))
const copy = new DatabaseSync(join(folder, 'copy.db'))
writeFileSync(target, sqlDump(copy))
console.log(`${target}: ${(await threads.list({ limit: 1000 })).length} threads`)
process.exit(0)
