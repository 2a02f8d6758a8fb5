/**
 * Hooks at the steps of a run and in the midst of its tools, and conditions that end it: your own, or
 * budgets that count sub-agents in.
 *
 * Prints:
 *
 *     Step 1
 *     Calling bash
 *     bash completed
 *     Step 2
 *     Done
 *     stopped by taskComplete after step 2
 *     stopped by 50,000 tokens after step 5
 */

// #region program
import { agent, AgentState } from '@skein/agents'
import { react } from '@skein/agents/execution'
import { anyOf, maxCost, maxTime, maxTokens } from '@skein/agents/middleware'
import { costMiddleware } from '@skein/ai/middleware'
import { calls, says, scripted, stops } from '@skein/ai/testing'
import { codeTools } from './code-tools.ts'

const { Bash, Read, Write } = codeTools(new Map())
const test = calls('bash', { command: 'npm test' })
const tools = [Bash, Read, Write]

const coder = agent({
  model: scripted([test, says('All green.')]),
  tools,
  // At the steps of the run.
  strategy: {
    onStepStart: (step) => console.log(`Step ${step}`),
    onComplete: () => console.log('Done'),
  },
  // While tools run.
  toolStrategy: {
    maxIterations: Infinity,
    onToolCall: (tool) => console.log(`Calling ${tool.name}`),
    onAfterCall: (tool) => console.log(`${tool.name} completed`),
  },
})
await coder.query('Run the tests')

// The condition is asked after every step. Its second argument has the totals of the run.
const busy = scripted(({ tools: offered }) => (offered.length > 0 ? test : says('On it goes.')))
const careful = agent({
  model: busy,
  execution: react(),
  tools,
  strategy: {
    onStepEnd: (step, { state }) => (step === 2 ? state.withMetadata('taskComplete', true) : state),
    stopCondition: (state, { usage }) => {
      if (state.metadata['taskComplete']) return true // an explicit signal
      if (usage.totalTokens > 50_000) return true // a budget
      if (Date.now() - Number(state.metadata['startTime']) > 300_000) return true // time
      return false
    },
  },
})
const begun = AgentState.initial().withMetadata('startTime', Date.now())
const { state } = await careful.generate('Work', begun)
console.log(`stopped by taskComplete after step ${state.step}`)

// The same limits, ready made.
const usage = { inputTokens: 9000, outputTokens: 1000, totalTokens: 10_000 }
const catalog = { 'scripted/script': { prices: { input: 3, output: 15 } } }
const spending = agent({
  llmMiddleware: [costMiddleware({ catalog })], // maxCost needs the prices of the model
  model: scripted(() => [test, stops('tool_use', { usage })]),
  tools,
  strategy: { stopCondition: anyOf(maxTokens(50_000), maxCost(5), maxTime(300_000)) },
})
const { state: spent } = await spending.generate('Work', AgentState.initial())
console.log(`stopped by 50,000 tokens after step ${spent.step}`)
// #endregion program
