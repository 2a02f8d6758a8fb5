/**
 * How an agent works is apart from what it is: `loop` calls tools until there is nothing to do, `react`
 * reasons before it acts, `plan` plans first. None has a limit unless you set one.
 *
 * Prints:
 *
 *     loop: 4. (2 steps, 2 inferences)
 *     loop, one iteration: stopped by max_iterations after step 1
 *     react: 4. (2 steps, 4 inferences)
 *       it thought: I need to add.
 *       it thought: I have the sum.
 *     plan: It is 4. (3 steps, 4 inferences)
 *       sum: completed
 *       tell: completed
 *     react until the budget is used: stopped by stop_condition after step 3
 */

// #region program
import { agent, AgentState } from '@skein/agents'
import { loop, plan, react } from '@skein/agents/execution'
import { tool } from '@skein/ai'
import { calls, says, scripted, type ScriptStep } from '@skein/ai/testing'
import { z } from 'zod'

const calculator = tool({
  name: 'add',
  description: 'Adds two numbers.',
  parameters: z.object({ a: z.number(), b: z.number() }),
  run: ({ a, b }) => a + b,
})
const add = calls('add', { a: 2, b: 2 })
const use = (script: readonly ScriptStep[]) => ({ model: scripted(script) })

// The same definition with other strategies: an agent can be spread into a new one.
const simple = agent({ ...use([add, says('4.')]), tools: [calculator], execution: loop() })
const limited = agent({ ...simple, ...use([add]), execution: loop({ maxIterations: 1 }) })
const reasoning = agent({
  ...simple,
  ...use([says('I need to add.'), add, says('I have the sum.'), says('4.')]),
  execution: react(),
})
const steps = [
  { id: 'sum', description: 'Add the numbers', tool: 'add', dependsOn: [] },
  { id: 'tell', description: 'Tell the result', dependsOn: ['sum'] },
]
const planning = agent({
  ...simple,
  ...use([says(JSON.stringify({ steps })), add, says('Done.'), says('It is 4.')]),
  execution: plan(),
})

const ask = async (one: typeof simple) => one.generate('What is 2 + 2?', AgentState.initial())
for (const [name, one] of Object.entries({ loop: simple, react: reasoning, plan: planning })) {
  const { turn, state } = await ask(one)
  console.log(`${name}: ${turn.text} (${state.step} steps, ${turn.cycles} inferences)`)
  for (const thought of state.reasoning) console.log(`  it thought: ${thought}`)
  for (const { id, status } of state.plan ?? []) console.log(`  ${id}: ${status}`)
  if (one !== simple) continue
  const end = await ask(limited)
  console.log(`loop, one iteration: stopped by ${end.stopReason} after step ${end.state.step}`)
}

// Your own limits: a hook may write into the state, the condition reads it.
const endless = scripted(({ tools }) => (tools.length > 0 ? add : says('On and on.')))
const bounded = agent({
  ...reasoning,
  model: endless,
  execution: react({ maxSteps: 20 }),
  toolStrategy: { maxIterations: 50 },
  strategy: {
    onStepEnd: (_, { state }) =>
      state.withMetadata('budget', Number(state.metadata['budget'] ?? 0) + 4000),
    stopCondition: (state) => Number(state.metadata['budget']) > 10_000,
  },
})
const { stopReason, state } = await ask(bounded)
console.log(`react until the budget is used: stopped by ${stopReason} after step ${state.step}`)
// #endregion program
