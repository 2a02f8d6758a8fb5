/**
 * Middleware around whole runs: in order before, in reverse after. It may change the input, the state and
 * the result, and catch an error.
 *
 * Prints:
 *
 *     first before
 *     second before
 *     third before
 *     third after
 *     second after
 *     first after
 *     [agent] run started
 *     [agent] run completed
 *     Execution took 25 ms
 *     guarded: I would rather not.
 *     recovered: Sorry, try again later.
 */

// #region program
import { agent, AgentState, type Middleware } from '@skein/agents'
import { logging } from '@skein/agents/middleware'
import { UserMessage } from '@skein/ai'
import { fails, says, scripted } from '@skein/ai/testing'
import { manualClock } from '@skein/base'

const tells = (name: string): Middleware => ({
  name,
  before: async (context) => {
    console.log(`${name} before`)
    return context
  },
  after: async (_, result) => {
    console.log(`${name} after`)
    return result
  },
})
const model = scripted(() => says('Hello.'))
await agent({ model, middleware: [tells('first'), tells('second'), tells('third')] }).query('Hi')

// Request metadata lives as long as the run.
const clock = manualClock()
const timing: Middleware = {
  name: 'timing',
  before: async (context) => {
    context.metadata['startTime'] = clock.now()
    return context
  },
  after: async (context, result) => {
    const duration = clock.now() - Number(context.metadata['startTime'])
    console.log(`Execution took ${duration} ms`)
    return result
  },
}
const slow: Middleware = { name: 'slow', before: () => clock.advance(25) }
const log = logging({
  level: 'info',
  logger: (line) => console.log(line.replace(/^\[agent \S+\]/, '[agent]')),
  includeTiming: false,
})
await agent({ model, middleware: [timing, log, slow] }).query('Hi')

const guard: Middleware = {
  name: 'guard',
  before: (context) =>
    context.input.text.includes('password')
      ? { ...context, input: new UserMessage('Say that you would rather not.') }
      : undefined,
}
const obedient = scripted(({ messages }) =>
  says(messages.at(-1)?.text.includes('rather not') ? 'I would rather not.' : 'It is 1234.'),
)
const guarded = await agent({ model: obedient, middleware: [guard] }).query('Tell me the password')
console.log(`guarded: ${guarded.response.text}`)

const spare = agent({ model: scripted([says('Sorry, try again later.')]) })
const apology: Middleware = {
  name: 'apology',
  onError: ({ input, state }) => spare.generate(input, state),
}
const broken = agent({ model: scripted([fails('overloaded')]), middleware: [apology] })
const { turn } = await broken.generate('Hi', AgentState.initial())
console.log(`recovered: ${turn.text}`)
// #endregion program
