/**
 * `createAgent` of LangChain inside a governed run, with its model recorded: the answer needs evidence, and a
 * call of high risk waits for a person. The resumed run asks the model only for what comes after that call.
 *
 * Prints:
 *
 *     the model was asked 2 times; reversed: nothing
 *     a person signs: reverse_wire {"wire":"W-1"}
 *     deliver "W-1 is reversed."
 *     the model was asked 3 times; reversed: W-1
 */
import { AIMessage, createAgent, tool } from 'langchain'
import type { Run } from '@skein/governance'
import { langChainModel, langGraphTools } from '@skein/governance/langgraph'
import { identity, reversed } from '../wire-bank.ts'
import { gov, sign, task } from '../wire-governor.ts'
import { type Call, ScriptedModel } from './scripted-model.ts'

const calls: Call[] = [
  { name: 'ledger_snapshot', args: {} },
  { name: 'reverse_wire', args: { wire: 'W-1' } },
]
const model = new ScriptedModel(calls, 'W-1 is reversed.')
const told = () =>
  `the model was asked ${model.asked} times; reversed: ${reversed.join() || 'nothing'}`

// #region run
async function answer(run: Run): Promise<string> {
  const agent = createAgent({
    model: langChainModel(run, model, { AIMessage }),
    tools: langGraphTools(run, task.tools, { tool }),
  })
  const question = { role: 'user', content: 'Reverse W-1, please.' }
  const { messages } = await agent.invoke({ messages: [question] })
  return String(messages.at(-1)?.text)
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
