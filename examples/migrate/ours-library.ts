/** The desk with `@skein/agents`: the state is a value that you keep. */

// #region program
import { agent, AgentState } from '@skein/agents'
import { defer, tool } from '@skein/ai'
import { openaiCompatible } from '@skein/ai/openai-compatible'
import { z } from 'zod'

const vendor = openaiCompatible({
  name: 'vendor',
  baseUrl: process.env['OPENAI_BASE_URL'] ?? 'https://api.openai.com/v1',
  keyVariable: 'OPENAI_API_KEY',
})

const lookUpOrder = tool({
  name: 'look_up_order',
  description: 'Finds out where an order is.',
  parameters: z.object({ order: z.string() }),
  run: ({ order }) => ({ order, status: 'on its way' }),
})
const refund = tool({
  name: 'refund',
  description: 'Pays the money for an order back.',
  parameters: z.object({ order: z.string() }),
  approval: ({ order }) => defer({ kind: 'approval', request: { order } }),
  run: ({ order }) => ({ refunded: order }),
})
const desk = agent({
  model: vendor('gpt-5-mini'),
  system: 'You are the support desk of a shop.',
  tools: [lookUpOrder, refund],
})

// Streaming.
const run = desk.stream('I am Ada. Where is order O-7?', AgentState.initial())
for await (const event of run) {
  if (event.source === 'upp' && event.upp.type === 'text_delta')
    process.stdout.write(event.upp.delta.text)
}
const { state } = await run.result
process.stdout.write('\n')

// Memory is the state; the call that waits is in it.
const asked = await desk.generate('Please refund it.', state)
const [waiting] = asked.interrupts ?? []
console.log(`waits for a person: refund ${JSON.stringify(waiting?.request)}`)
const stored = JSON.stringify(asked.state)

// Later, in any process: the person has said yes.
const later = AgentState.fromJSON(JSON.parse(stored))
const { turn } = await desk.resume(later, { [waiting!.id]: { type: 'approve' } })
console.log(turn.text)
// #endregion program
