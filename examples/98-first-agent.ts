/**
 * The smallest agent that does something: a model, its instructions, one tool, and a thread to talk in.
 *
 * Prints:
 *
 *     Order O-7 is on its way.
 *     user: Where is order O-7?
 *     call: look_up_order {"order":"O-7"}
 *     assistant: Order O-7 is on its way.
 */

// #region program
import { anthropic } from '@skein/ai/anthropic'
import { calls, says, scripted } from '@skein/ai/testing'
import { createRuntime, defineAgent, defineTool } from '@skein/runtime'
import { z } from 'zod'

const lookUpOrder = defineTool({
  name: 'look_up_order',
  description: 'Finds out where an order is.',
  args: z.object({ order: z.string().describe('The number, e.g. O-7') }),
  risk: 'read_only',
  execute: (_state, { order }) => ({ order, status: 'on its way' }),
})

// Without a key a script answers, so that the program runs anywhere.
const model = process.env['ANTHROPIC_API_KEY']
  ? anthropic('claude-sonnet-4-5')
  : scripted([calls('look_up_order', { order: 'O-7' }), says('Order O-7 is on its way.')])

const support = defineAgent({
  name: 'support',
  instructions: 'You are the support desk of a shop. Look orders up before you answer.',
  model,
  tools: [lookUpOrder],
})

const runtime = await createRuntime({ agents: [support] })
await runtime.start()
const thread = await runtime.threads.create({ agent: 'support' })
const { text } = await runtime.threads.run(thread.id, 'Where is order O-7?')
console.log(text)
// #endregion program

// #region look
for (const { message } of await runtime.threads.messages(thread.id)) {
  if (message.type !== 'tool_result' && message.text !== '')
    console.log(`${message.type}: ${message.text}`)
  if (message.type === 'assistant')
    for (const { toolName, arguments: args } of message.toolCalls ?? [])
      console.log(`call: ${toolName} ${JSON.stringify(args)}`)
}
await runtime.stop()
// #endregion look
