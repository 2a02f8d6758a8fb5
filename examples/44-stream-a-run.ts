/**
 * Watches a run: steps and actions from the agent, text from the model. Watching changes nothing: the
 * state is the one that waiting would have given.
 *
 * Prints:
 *
 *     Step 1
 *       calls read_file
 *       saw "export const answer = 41"
 *     Step 2
 *       It says 41. That is off by one.
 *     same messages as generate: true, same step: true
 */

// #region program
import { agent, AgentState } from '@skein/agents'
import { calls, says, scripted } from '@skein/ai/testing'
import { codeTools } from './code-tools.ts'

const { Read } = codeTools(new Map([['answer.ts', 'export const answer = 41']]))
const coder = agent({
  model: scripted(({ messages }) =>
    messages.at(-1)?.type === 'tool_result'
      ? says('It says 41. That is off by one.')
      : calls('read_file', { path: 'answer.ts' }),
  ),
  tools: [Read],
})

const state = AgentState.initial()
const stream = coder.stream('What is in answer.ts?', state)
for await (const event of stream) {
  if (event.source === 'uap') {
    const { type, step, data } = event.uap
    if (type === 'step_start') console.log(`Step ${step}`)
    if (type === 'action')
      console.log(`  calls ${data.toolCalls.map((one) => one.toolName).join()}`)
    if (type === 'observation')
      console.log(`  saw ${data.observations.map(({ result }) => JSON.stringify(result)).join()}`)
  } else if (event.upp.type === 'content_block_start' && event.upp.delta.block === 'text') {
    process.stdout.write('  ')
  } else if (event.upp.type === 'text_delta') {
    process.stdout.write(event.upp.delta.text)
  }
}
console.log()

const { state: streamed } = await stream.result
const { state: waited } = await coder.generate('What is in answer.ts?', state)
const sameMessages = streamed.messages.length === waited.messages.length
console.log(
  `same messages as generate: ${sameMessages}, same step: ${streamed.step === waited.step}`,
)
// #endregion program
