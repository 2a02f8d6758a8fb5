/**
 * The OpenAI Agents SDK with governed tools: a refund waits for a person, the process ends, and another one
 * continues from the stored state.
 *
 * Prints:
 *
 *     process 1 waits for a person: refund {"order":"A-7"}; refunded: nothing
 *     process 2, approved: "Refunded A-7."; refunded: A-7
 *     process 2, the same state again; refunded: A-7
 */
import { Agent, type Model, Runner, RunState, tool, Usage } from '@openai/agents'
import { z } from 'zod'
import { governOpenAiAgents } from '@skein/governance/govern'
import { inTwoProcesses } from './two-processes.ts'

const shop = await inTwoProcesses(import.meta.filename)
const { audit, payloads } = shop

// #region tools
const parameters = z.object({ order: z.string() })
const charge = tool({
  name: 'charge',
  description: 'Charges an order again.',
  parameters,
  execute: ({ order }) => `charged ${order}`,
})
const refund = tool({
  name: 'refund',
  description: 'Pays an order back.',
  parameters,
  execute: ({ order }) => JSON.stringify(shop.refund(order)),
})
// #endregion tools

/** A scripted model, which calls the refund and then says what it received. */
const model: Model = {
  getResponse: async ({ input }) => {
    const told = JSON.stringify(input).includes('refunded')
    const callId = `call_${crypto.randomUUID()}`
    const call = { type: 'function_call', callId, name: 'refund', arguments: '{"order":"A-7"}' }
    const content = [{ type: 'output_text', text: 'Refunded A-7.' } as const]
    return {
      usage: new Usage(),
      output: [
        told
          ? { type: 'message', role: 'assistant', status: 'completed', content }
          : { ...call, type: 'function_call', status: 'completed' },
      ],
    }
  },
  // oxlint-disable-next-line require-yield -- this model does not stream
  async *getStreamedResponse() {
    throw new Error('not streamed')
  },
}

// #region governed
const tools = governOpenAiAgents({
  tools: [
    { tool: charge, risk: 'write_low_risk' },
    {
      tool: refund,
      risk: 'write_high_risk',
      rollback: ({ order }: { order: string }) => ({
        type: 'tool_call',
        target: 'charge',
        payload: { order },
      }),
    },
  ],
  audit,
  payloads,
  onDefault: () => undefined,
})
const agent = new Agent({ name: 'clerk', instructions: 'Help.', model, tools })
// #endregion governed
const runner = new Runner({ tracingDisabled: true })

if (shop.number === 1) {
  // #region ask
  const result = await runner.run(agent, 'Refund A-7, please.')
  const asked = result.interruptions.map(({ name, arguments: args }) => `${name} ${args}`)
  shop.save('state', result.state.toString())
  // #endregion ask
  const refunded = shop.refunds() || 'nothing'
  console.log(`process 1 waits for a person: ${asked.join()}; refunded: ${refunded}`)
} else {
  // #region approve
  const goOn = async () => {
    const state = await RunState.fromString(agent, shop.load('state'))
    for (const item of state.getInterruptions()) state.approve(item)
    return runner.run(agent, state)
  }
  const { finalOutput } = await goOn()
  // #endregion approve
  console.log(`process 2, approved: "${finalOutput}"; refunded: ${shop.refunds()}`)
  await goOn()
  console.log(`process 2, the same state again; refunded: ${shop.refunds()}`)
}
await audit.close()
