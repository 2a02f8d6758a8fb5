/** The desk with `@skein/runtime`: threads are stored, and so is what waits. */

// #region program
import { openaiCompatible } from '@skein/ai/openai-compatible'
import { createRuntime, defineAgent, defineTool } from '@skein/runtime'
import { z } from 'zod'

const vendor = openaiCompatible({
  name: 'vendor',
  baseUrl: process.env['OPENAI_BASE_URL'] ?? 'https://api.openai.com/v1',
  keyVariable: 'OPENAI_API_KEY',
})

const lookUpOrder = defineTool({
  name: 'look_up_order',
  description: 'Finds out where an order is.',
  args: z.object({ order: z.string() }),
  risk: 'read_only',
  execute: (_thread, { order }) => ({ order, status: 'on its way' }),
})
const refund = defineTool({
  name: 'refund',
  description: 'Pays the money for an order back.',
  args: z.object({ order: z.string() }),
  risk: 'write_high_risk',
  rollback: 'impossible',
  execute: (_thread, { order }) => ({ refunded: order }),
})
// With `folder` and `secretKey` the threads are in a file; without, in memory.
const runtime = await createRuntime({
  agents: [
    defineAgent({
      name: 'desk',
      instructions: 'You are the support desk of a shop.',
      model: vendor('gpt-5-mini'),
      tools: [lookUpOrder, refund],
    }),
  ],
})
await runtime.start()
const { id } = await runtime.threads.create({ agent: 'desk', owner: 'ada' })

// Streaming.
const { seq } = await runtime.threads.send(id, 'I am Ada. Where is order O-7?')
for await (const { event } of runtime.subscribe(id, { after: String(seq), untilParked: true })) {
  if (event.type === 'text_delta') process.stdout.write(event.text)
}
process.stdout.write('\n')

// Memory is the thread.
const { waiting } = await runtime.threads.run(id, 'Please refund it.')
for (const { toolName, arguments: args } of waiting)
  console.log(`waits for a person: ${toolName} ${JSON.stringify(args)}`)

// Later, in any process with the same store: the person has said yes.
for (const { threadId, interruptId } of await runtime.inbox.list())
  await runtime.inbox.approve({ threadId, interruptId, by: 'pat' })
const { text } = await runtime.threads.settled(id)
console.log(text)
await runtime.stop()
// #endregion program
