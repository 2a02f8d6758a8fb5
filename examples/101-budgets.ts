/**
 * Two limits on spending. The budget of an agent ends a session that costs too much; the limits of the operator count
 * over all threads of a tenant, and refuse new messages until the next period.
 *
 * Prints:
 *
 *     failed: budget_exceeded
 *     spent by the thread: 0.06 US dollars
 *     acme: SPENDING_LIMIT
 *     other tenants: completed
 */

import { calls, says, scripted, stops } from '@skein/ai/testing'
import { createRuntime, defineAgent, defineModel, defineTool } from '@skein/runtime'
import { z } from 'zod'

const search = defineTool({
  name: 'search',
  description: 'Searches the archive.',
  args: z.object({ words: z.string() }),
  risk: 'read_only',
  execute: () => 'nothing yet',
})
/** It searches for ever, unless it is greeted. */
const searcher = scripted(({ messages }) => {
  const [first] = messages
  const isGreeted = first?.type === 'user' && first.text === 'Hello!'
  const usage = { inputTokens: 10_000, outputTokens: 0, totalTokens: 10_000 }
  return [
    isGreeted ? says('Hello!') : calls('search', { words: 'loom' }),
    stops(undefined, { usage }),
  ]
})

// #region prices
const large = defineModel({
  name: 'large',
  model: searcher,
  inputPrice: 2, // US dollars per million tokens
  outputPrice: 10,
  capabilities: { maxOutputTokens: 100 },
})
// #endregion prices
// #region budget
const finder = defineAgent({
  name: 'finder',
  instructions: 'Find it.',
  model: large,
  tools: [search],
  budget: { maxCostUsd: 0.05, maxDurationMs: 600_000, tree: { maxCostUsd: 0.2 } },
})
// #endregion budget

// #region spending
const DAY = 24 * 3_600_000
const runtime = await createRuntime({
  agents: [finder],
  spending: [{ per: 'tenant', periodMs: DAY, maxCostUsd: 0.05, tenants: ['acme'] }],
})
// #endregion spending
await runtime.start()

const ask = async (tenant: string, text: string) => {
  const { id } = await runtime.threads.create({ agent: 'finder', tenant })
  return { id, ...(await runtime.threads.run(id, text)) }
}
const { id, outcome, reason } = await ask('default', 'Find the book about looms.')
console.log(`${outcome}: ${reason}`)
// #region cost
const { costUsd } = await runtime.threads.cost(id)
console.log(`spent by the thread: ${costUsd?.toFixed(2)} US dollars`)
// #endregion cost
await ask('acme', 'Find the book about looms.')
const refused = await ask('acme', 'Hello!').catch((error: { code: string }) => error)
console.log(`acme: ${'code' in refused ? refused.code : refused.outcome}`)
console.log(`other tenants: ${(await ask('default', 'Hello!')).outcome}`)
await runtime.stop()
