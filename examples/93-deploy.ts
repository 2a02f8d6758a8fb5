/**
 * Two versions of an agent. Before the second one is deployed, `findStranded` says what it would strand. A
 * process with `pin: 'session'` leaves sessions of the first version alone; they end where it still runs.
 *
 * Prints:
 *
 *     tool_gone: refund
 *     agent_changed: desk
 *     version 2: waiting, AGENT_CHANGED
 *     version 1: Refunded O-7.
 */

// #region program
import { randomBytes } from 'node:crypto'
import { mkdtemp, rm } from 'node:fs/promises'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import {
  createRegistry,
  createRuntime,
  defineAgent,
  defineTool,
  findStranded,
  readSqliteStore,
} from '@skein/runtime'
import type { EmbeddedRuntime, Registry } from '@skein/runtime'
import { calls, says, scripted } from '@skein/ai/testing'

const refund = defineTool({
  name: 'refund',
  description: 'Pays money back.',
  risk: 'write_high_risk',
  rollback: 'impossible',
  execute: () => 'Refunded O-7.',
})
const model = scripted(({ messages }) => {
  const last = messages.at(-1)!
  return last.type === 'tool_result' ? says(String(last.results[0]!.result)) : calls('refund', {})
})
const version = (tools: readonly (typeof refund)[]): Registry => {
  return createRegistry({
    agents: [defineAgent({ name: 'desk', instructions: 'You refund.', model, tools })],
  })
}
const [one, two] = [version([refund]), version([])]

const folder = await mkdtemp(join(tmpdir(), 'skein-'))
const secretKey = randomBytes(32)
const open = async (registry: Registry): Promise<EmbeddedRuntime> => {
  const runtime = await createRuntime({ registry, folder, secretKey, pin: 'session' })
  await runtime.start()
  return runtime
}
const first = await open(one)
const { id } = await first.threads.create({ agent: 'desk' })
await first.threads.run(id, 'Please refund O-7.')
await first.stop()

// The same as `skein check ./next --against .skein`, without and with --pinned.
const store = readSqliteStore(join(folder, 'skein.db'))
for (const pin of ['none', 'session'] as const)
  for (const { problem, subject } of (await findStranded(two, store, { pin })).findings)
    console.log(`${problem}: ${subject}`)
await store.close()

const second = await open(two)
const [item] = await second.inbox.list()
await second.inbox.approve({ ...item!, by: 'pat' })
await second.idle()
const { lifecycle } = await second.threads.get(id)
const errors = (await second.store.events(id)).flatMap(({ event }) =>
  event.type === 'error_raised' ? [event.code] : [],
)
console.log(`version 2: ${lifecycle}, ${errors.join()}`)
await second.stop()

const third = await open(one)
console.log(`version 1: ${(await third.threads.settled(id)).text}`)
await third.stop()
await rm(folder, { recursive: true })
// #endregion program
