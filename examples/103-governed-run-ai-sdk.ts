/**
 * The AI SDK inside a governed run, with its model recorded: the answer needs evidence, and a call of high
 * risk waits for a person. The resumed run asks the model only for what comes after that call.
 *
 * Prints:
 *
 *     the model was asked 2 times; reversed: nothing
 *     a person signs: reverse_wire {"wire":"W-1"}
 *     deliver "W-1 is reversed."
 *     the model was asked 3 times; reversed: W-1
 */
import { generateText, stepCountIs } from 'ai'
import { MockLanguageModelV4 } from 'ai/test'
import type { Run } from '@skein/governance'
import { aiSdkModel, aiSdkTools } from '@skein/governance/ai-sdk'
import { identity, reversed } from './wire-bank.ts'
import { gov, sign, task } from './wire-governor.ts'

/** A scripted model: it reads the ledger, reverses the wire, and says so. */
const script = ['ledger_snapshot', 'reverse_wire']
const model = new MockLanguageModelV4({
  doGenerate: async ({ prompt }) => {
    const toolName = script[prompt.filter(({ role }) => role === 'tool').length]
    const input = toolName === 'reverse_wire' ? '{"wire":"W-1"}' : '{}'
    const toolCallId = `call_${crypto.randomUUID()}`
    return {
      content: [
        toolName === undefined
          ? { type: 'text', text: 'W-1 is reversed.' }
          : { type: 'tool-call', toolCallId, toolName, input },
      ],
      finishReason: { unified: toolName === undefined ? 'stop' : 'tool-calls', raw: undefined },
      usage: {
        inputTokens: { total: 1, noCache: 1, cacheRead: 0, cacheWrite: 0 },
        outputTokens: { total: 1, text: 1, reasoning: 0 },
      },
      warnings: [],
    }
  },
})
const told = () =>
  `the model was asked ${model.doGenerateCalls.length} times; reversed: ${reversed.join() || 'nothing'}`

// #region run
async function answer(run: Run): Promise<string> {
  const { text } = await generateText({
    model: aiSdkModel(run, model),
    tools: aiSdkTools(run, task.tools),
    prompt: 'Reverse W-1, please.',
    stopWhen: stepCountIs(5),
  })
  return text
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
