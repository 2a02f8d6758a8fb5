/**
 * An agent of the OpenAI Agents SDK inside a governed run, with its model recorded: the answer needs
 * evidence, and a high-risk call waits for a person. The resumed run asks the model only for what comes
 * after that call.
 *
 * Prints:
 *
 *     the model was asked 2 times; reversed: nothing
 *     a person signs: reverse_wire {"wire":"W-1"}
 *     deliver "W-1 is reversed."
 *     the model was asked 3 times; reversed: W-1
 */
import { Agent, type Model, Runner, Usage } from '@openai/agents'
import type { Run } from '@skein/governance'
import { openAiAgentsModel, openAiAgentsTools } from '@skein/governance/openai-agents'
import { identity, reversed } from './wire-bank.ts'
import { gov, sign, task } from './wire-governor.ts'

/** A scripted model: it reads the ledger, reverses the wire, and says so. */
const script = ['ledger_snapshot', 'reverse_wire']
let asked = 0
const model: Model = {
  getResponse: async ({ input }) => {
    asked += 1
    const results = [input].flat().filter((item) => JSON.stringify(item).includes('call_result'))
    const name = script[results.length]
    const args = name === 'reverse_wire' ? '{"wire":"W-1"}' : '{}'
    const callId = `call_${crypto.randomUUID()}`
    const content = [{ type: 'output_text', text: 'W-1 is reversed.' } as const]
    return {
      usage: new Usage(),
      output: [
        name === undefined
          ? { type: 'message', role: 'assistant', status: 'completed', content }
          : { type: 'function_call', callId, name, arguments: args, status: 'completed' },
      ],
    }
  },
  // oxlint-disable-next-line require-yield -- this model does not stream
  async *getStreamedResponse() {
    throw new Error('not streamed')
  },
}
const runner = new Runner({ tracingDisabled: true })
const told = () => `the model was asked ${asked} times; reversed: ${reversed.join() || 'nothing'}`

// #region run
async function answer(run: Run): Promise<string> {
  const clerk = new Agent({
    name: 'clerk',
    instructions: 'Help.',
    model: openAiAgentsModel(run, model),
    tools: openAiAgentsTools(run, task.tools),
  })
  const { finalOutput } = await runner.run(clerk, 'Reverse W-1, please.')
  return String(finalOutput)
}
const first = await gov.run(task, { identity, input: null }, answer)
if (first.outcome !== 'pending') throw new Error('a person should have been asked')
// #endregion run
console.log(told())
// #region resume
const tokens = await sign(first.waiting)
const done = await gov.resume(first.request_id, task, answer, { tokens })
// #endregion resume
console.log(done.state, JSON.stringify(done.state === 'deliver' ? done.value : done))
console.log(told())
