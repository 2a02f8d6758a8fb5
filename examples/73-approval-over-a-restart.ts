/**
 * A refund is a high-risk write: the thread parks as data until a person decides, also over a restart. The
 * approval is a signed token that is spent with the call, and the audit log of the thread verifies.
 *
 * Prints:
 *
 *     waiting: refund {"order":"O-7","amount":25}
 *     after a restart, refunded: nothing yet
 *     completed: Refunded 25 for O-7.
 *     refunded: O-7
 *     a second decision is refused: INTERRUPT_NOT_FOUND
 *     audit log ok: true
 */

// #region program
import { randomBytes } from 'node:crypto'
import { mkdtemp, rm } from 'node:fs/promises'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { createRuntime, defineAgent, defineTool, verifyAudit } from '@skein/runtime'
import type { EmbeddedRuntime } from '@skein/runtime'
import { calls, says, scripted } from '@skein/ai/testing'
import { z } from 'zod'

const refunded: string[] = []
const refund = defineTool({
  name: 'refund',
  description: 'Pays money back.',
  args: z.object({ order: z.string(), amount: z.number() }),
  risk: 'write_high_risk',
  rollback: ({ order }) => ({ type: 'tool_call', target: 'charge', payload: { order } }),
  execute: (_, { order, amount }) => {
    refunded.push(order)
    return `Refunded ${amount} for ${order}.`
  },
})
const charge = defineTool({
  name: 'charge',
  description: 'Charges again.',
  args: z.object({ order: z.string() }),
  risk: 'write_low_risk',
  execute: (_, { order }) => `Charged ${order}.`,
})
const model = scripted(({ messages }) => {
  const last = messages.at(-1)!
  if (last.type === 'tool_result') return says(String(last.results[0]!.result))
  return calls('refund', { order: 'O-7', amount: 25 })
})
const desk = defineAgent({ name: 'refunds', instructions: 'You refund.', model, tools: [refund] })

const folder = await mkdtemp(join(tmpdir(), 'skein-'))
const secretKey = randomBytes(32) // in production from the environment, never next to the data
const open = async (): Promise<EmbeddedRuntime> => {
  const runtime = await createRuntime({ agents: [desk], tools: [charge], folder, secretKey })
  await runtime.start()
  return runtime
}
// #region restart
const first = await open()
const thread = await first.threads.create({ agent: 'refunds', owner: 'mia' })
const { waiting } = await first.threads.run(thread.id, 'Please refund O-7.')
for (const { toolName, arguments: args } of waiting)
  console.log(`waiting: ${toolName} ${JSON.stringify(args)}`)
await first.stop()

const second = await open()
console.log(`after a restart, refunded: ${refunded.join() || 'nothing yet'}`)
const [item] = await second.inbox.list()
const decision = { threadId: item!.threadId, interruptId: item!.interruptId, by: 'pat' }
await second.inbox.approve(decision)
const { outcome, text } = await second.threads.settled(thread.id)
console.log(`${outcome}: ${text}`)
// #endregion restart
console.log(`refunded: ${refunded.join()}`)
const again = await second.inbox.approve(decision).catch((error: { code: string }) => error)
console.log(`a second decision is refused: ${again?.code}`)
// #region audit
const audit = await second.threads.audit(thread.id)
const { ok } = await verifyAudit(audit, { keys: [audit.publicKey] })
console.log(`audit log ok: ${ok}`)
// #endregion audit
await second.stop()
await rm(folder, { recursive: true })
// #endregion program
