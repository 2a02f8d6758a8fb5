/**
 * What sub-agents do shows in the stream of their caller while it happens, and stays in its state. First
 * a tool that tells it by hand, then one made by `subagent`, which does the same.
 *
 * Prints:
 *
 *     Step 1
 *       explorer starts: Find the tax
 *         explorer calls grep
 *         explorer says: tax.ts
 *       explorer ends: tax.ts
 *     Step 2
 *     kept in the state: explorer used grep and answered "tax.ts"
 *     made by subagent(): subagent_start, subagent_event, subagent_end
 */

// #region program
import { agent, AgentState, subagent, type AgentContext, type SubagentEvent } from '@skein/agents'
import type { Tool } from '@skein/ai'
import { calls, says, scripted } from '@skein/ai/testing'
import { randomUUID } from 'node:crypto'
import { codeTools } from './code-tools.ts'

const { Grep } = codeTools(new Map([['tax.ts', 'export const tax = 0.19']]))
const explorer = agent({
  model: scripted(({ messages }) =>
    messages.at(-1)?.type === 'tool_result' ? says('tax.ts') : calls('grep', { text: 'tax' }),
  ),
  tools: [Grep],
})
const parameters = {
  type: 'object',
  properties: { query: { type: 'string' } },
  required: ['query'],
} as const

const explorerTool: Tool = {
  name: 'explore',
  description: 'Explores the code base.',
  parameters,
  run: async (params: { query: string }, context: AgentContext) => {
    const identity = {
      subagentId: randomUUID(),
      subagentType: 'explorer',
      parentToolCallId: context.toolCallId,
    }
    const tell = (event: SubagentEvent): void => context.onSubagentEvent?.(event)
    tell({ type: 'subagent_start', ...identity, prompt: params.query, timestamp: Date.now() })

    const stream = explorer.stream(params.query, AgentState.initial(), { signal: context.signal })
    for await (const innerEvent of stream) tell({ type: 'subagent_event', ...identity, innerEvent })
    const { turn } = await stream.result

    tell({
      type: 'subagent_end',
      ...identity,
      success: true,
      result: turn.text,
      timestamp: Date.now(),
      toolExecutions: turn.toolExecutions,
      usage: turn.usage,
    })
    return turn.text
  },
}

const script = () =>
  scripted([calls('explore', { query: 'Find the tax' }), says('It is in tax.ts.')])
const coder = agent({ model: script(), tools: [explorerTool] })
const stream = coder.stream('Where is the tax?', AgentState.initial())
for await (const { uap } of stream) {
  if (uap?.type === 'step_start') console.log(`Step ${uap.step}`)
  if (uap?.type === 'subagent_start')
    console.log(`  ${uap.data.subagentType} starts: ${uap.data.prompt}`)
  if (uap?.type === 'subagent_event') {
    const { subagentType, innerEvent } = uap.data
    const { uap: step, upp: model } = innerEvent
    if (step?.type === 'action')
      console.log(`    ${subagentType} calls ${step.data.toolCalls[0]?.toolName}`)
    if (model?.type === 'text_delta') console.log(`    ${subagentType} says: ${model.delta.text}`)
  }
  if (uap?.type === 'subagent_end')
    console.log(`  ${uap.data.subagentType} ends: ${uap.data.result ?? uap.data.error}`)
}

const { state } = await stream.result
const [trace] = AgentState.fromJSON(JSON.parse(JSON.stringify(state))).subagentTraces
console.log(
  `kept in the state: ${trace?.subagentType} used ${trace?.toolExecutions?.map(({ toolName }) => toolName).join()} and answered "${trace?.result}"`,
)

const explore = subagent({
  name: 'explore',
  description: 'Explores the code base.',
  parameters,
  agent: explorer,
  prompt: ({ query }: { query: string }) => query,
  type: 'explorer',
})
const types = new Set<string>()
for await (const { uap } of agent({ model: script(), tools: [explore] }).stream(
  'Go',
  AgentState.initial(),
))
  if (uap?.type.startsWith('subagent')) types.add(uap.type)
console.log(`made by subagent(): ${[...types].join(', ')}`)
// #endregion program
