/** Sub-agents of sub-agents: what the outermost stream says about each of them. */
import {
  agent,
  AgentState,
  subagent,
  type AgentContext,
  type AgentOptions,
  type AgentStreamEvent,
  type SubagentExecutionTrace,
} from '@skein/agents'
import type { Tool } from '@skein/ai'
import { calls, says, scripted, type ScriptStep } from '@skein/ai/testing'
import { expect, test } from 'vitest'

const parameters = { type: 'object', properties: {} }

function helper(name: string, options: AgentOptions): Tool {
  return subagent({ name, description: 'd', parameters, agent: agent(options), prompt: () => name })
}

const calling = (name: string): ScriptStep => calls(name, {}, { id: idOf(name) })

/** The id of the call of a sub-agent, as a model may choose it. */
const idOf = (name: string): string => `${name}:1/ü %20`

/** A chain of sub-agents in which each calls the next; the last one follows the script. */
function chain(names: readonly string[], script: readonly ScriptStep[]): Tool {
  const [name, ...rest] = names
  if (rest.length === 0) return helper(name!, { model: scripted(script) })
  const tools = [chain(rest, script)]
  return helper(name!, { model: scripted([calling(rest[0]!), says('done')]), tools })
}

const names = ['outer', 'middle', 'inner']
test('UAP-145 UAP-146 at every depth an event is the agent’s or the model’s, never both', async () => {
  const parent = agent({
    model: scripted([calling('outer'), says('done')]),
    tools: [chain(names, [says('ok')])],
  })
  const agents = new Map<number, Set<string>>()
  const check = (event: AgentStreamEvent, depth: number): void => {
    expect(Object.keys(event).toSorted()).toEqual(['source', event.source].toSorted())
    const { uap } = event
    if (!uap) return
    expect(Object.keys(uap).toSorted()).toEqual(['agentId', 'data', 'step', 'type'])
    agents.set(depth, (agents.get(depth) ?? new Set<string>()).add(uap.agentId))
    if (uap.type === 'subagent_event') check(uap.data.innerEvent, depth + 1)
  }
  for await (const event of parent.stream('x', AgentState.initial())) check(event, 0)
  expect([...agents.keys()].toSorted()).toEqual([0, 1, 2, 3])
  expect(agents.get(0)).toEqual(new Set([parent.id]))
  expect([...agents.values()].map(({ size }) => size)).toEqual([1, 1, 1, 1])
})

test('UAP-113 UAP-124 at every depth events and traces name the call that its own agent made', async () => {
  const parent = () =>
    agent({
      model: scripted([calling('outer'), says('done')]),
      tools: [chain(names, [says('ok')])],
    })
  const seen = names.map(() => new Set<string>())
  const check = ({ uap }: AgentStreamEvent, depth: number): void => {
    if (uap?.type === 'subagent_event') check(uap.data.innerEvent, depth + 1)
    if (uap?.type.startsWith('subagent_'))
      seen[depth]!.add((uap.data as SubagentExecutionTrace).parentToolCallId)
  }
  const stream = parent().stream('x', AgentState.initial())
  for await (const event of stream) check(event, 0)
  expect(seen).toEqual(names.map((name) => new Set([idOf(name)])))
  for (const { state } of [
    await stream.result,
    await parent().generate('x', AgentState.initial()),
  ]) {
    let traces = state.subagentTraces
    for (const name of names) {
      expect(traces!.map((trace) => trace.parentToolCallId)).toEqual([idOf(name)])
      traces = traces![0]!.children ?? []
    }
  }
})

test('UAP-118 UAP-123 UAP-124 a tool written by hand leaves the traces of all agents below it', async () => {
  // The example of UAP §8.7, over an agent that has sub-agents itself.
  const worker = agent({
    model: scripted([calling('middle'), says('all')]),
    tools: [chain(['middle', 'inner'], [says('ok')])],
  })
  const explore: Tool = {
    name: 'explore',
    description: 'd',
    parameters,
    async run(_: unknown, { onSubagentEvent, toolCallId }: AgentContext) {
      const own = { subagentId: 'e', subagentType: 'explorer', parentToolCallId: toolCallId }
      onSubagentEvent({ type: 'subagent_start', ...own, prompt: 'p', timestamp: 1 })
      const stream = worker.stream('p', AgentState.initial())
      for await (const innerEvent of stream)
        onSubagentEvent({ type: 'subagent_event', ...own, innerEvent })
      const { turn } = await stream.result
      const { toolExecutions, response } = turn
      const end = { success: true, result: response.text, timestamp: 2, toolExecutions }
      onSubagentEvent({ type: 'subagent_end', ...own, ...end })
      return response.text
    },
  }
  const parent = agent({ model: scripted([calling('explore'), says('done')]), tools: [explore] })
  const { state } = await parent.generate('x', AgentState.initial())
  expect(state.subagentTraces).toMatchObject([
    {
      subagentId: 'e',
      parentToolCallId: idOf('explore'),
      result: 'all',
      toolExecutions: [{ toolName: 'middle', toolCallId: idOf('middle'), result: 'done' }],
      children: [
        {
          subagentType: 'middle',
          parentToolCallId: idOf('middle'),
          prompt: 'middle',
          toolExecutions: [{ toolName: 'inner', result: 'ok' }],
          children: [{ subagentType: 'inner', result: 'ok', toolExecutions: [] }],
        },
      ],
    },
  ])
})
