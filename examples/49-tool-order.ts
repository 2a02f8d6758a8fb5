/**
 * Calls of one message run side by side unless someone says otherwise: a tool (`sequential`,
 * `dependsOn`), or the model (`after`). Results keep the order of the calls.
 *
 * Prints:
 *
 *     side by side: a starts, b starts, a ends, b ends
 *     sequential first: read starts, read ends, other starts, other ends
 *     dependsOn: read starts, read ends, write starts, write ends
 *     after: fetch starts, fetch ends, process starts, process ends, save starts, save ends
 *     results in call order: save, process, fetch
 */

// #region program
import { agent, AgentState } from '@skein/agents'
import { AssistantMessage, isToolResultMessage, UserMessage, type Tool } from '@skein/ai'
import { calls, says, scripted } from '@skein/ai/testing'

let log: string[] = []
function probe(name: string, options: Pick<Tool, 'sequential' | 'dependsOn'> = {}): Tool {
  return {
    name,
    description: `Does ${name}.`,
    parameters: { type: 'object' },
    ...options,
    run: async () => {
      log.push(`${name} starts`)
      await new Promise((resolve) => setTimeout(resolve, 1))
      log.push(`${name} ends`)
      return name
    },
  }
}

async function order(title: string, names: string[], tools: Tool[]): Promise<void> {
  log = []
  const model = scripted([names.map((name) => calls(name)), says('Done.')])
  await agent({ model, tools }).query('Go')
  console.log(`${title}: ${log.join(', ')}`)
}

await order('side by side', ['a', 'b'], [probe('a'), probe('b')])
await order(
  'sequential first',
  ['other', 'read'],
  [probe('read', { sequential: true }), probe('other')],
)
await order(
  'dependsOn',
  ['write', 'read'],
  [probe('read'), probe('write', { dependsOn: ['read'] })],
)

// A model that orders its own calls: `after` names calls of the same message.
const call = (toolCallId: string, toolName: string, after: string[] = []) => ({
  toolCallId,
  toolName,
  arguments: {},
  after,
})
const asked = AgentState.initial().withMessages([
  new UserMessage('Go'),
  new AssistantMessage('', [
    call('call_3', 'save', ['call_2']),
    call('call_2', 'process', ['call_1']),
    call('call_1', 'fetch'),
  ]),
])
log = []
const worker = agent({
  model: scripted([says('Done.')]),
  tools: [probe('fetch'), probe('process'), probe('save')],
})
const { state } = await worker.resume(asked) // continues with the calls that are open
console.log(`after: ${log.join(', ')}`)
const results = state.messages.filter(isToolResultMessage).flatMap((message) => message.results)
console.log(`results in call order: ${results.map(({ result }) => result).join(', ')}`)
// #endregion program
