/**
 * An agent as a tool of another. The tool's interface is written by hand, never taken from the agent. A
 * sub-agent without a model of its own uses its caller's.
 *
 * Prints:
 *
 *     explore_codebase {"query":"tax","fileTypes":[".ts"]}
 *       the explorer is asked: Find: tax in files: .ts
 *     tax.ts has it.
 *     helper ran with the caller's model: true, for agent coder: true
 *     shared helper: tax.ts has it.
 */

// #region program
import { agent, AgentState, subagent, type AgentContext } from '@skein/agents'
import type { Tool } from '@skein/ai'
import { calls, says, scripted } from '@skein/ai/testing'
import { codeTools } from './code-tools.ts'

const { Bash, Read, Write, Grep } = codeTools(new Map([['tax.ts', 'export const tax = 0.19']]))

const explorer = agent({
  model: scripted(({ messages }) => {
    if (messages.at(-1)?.type === 'tool_result') return says('tax.ts has it.')
    console.log(`  the explorer is asked: ${messages[0]?.text}`)
    return calls('grep', { text: 'tax' })
  }),
  tools: [Grep, Read],
  system: 'You explore codebases.',
})

const explorerTool: Tool = {
  name: 'explore_codebase',
  description: 'Explores codebase structure and finds relevant files',
  parameters: {
    type: 'object',
    properties: {
      query: { type: 'string', description: 'What to search for in the codebase' },
      fileTypes: {
        type: 'array',
        items: { type: 'string' },
        description: "File extensions to include (e.g., ['.ts', '.js'])",
      },
    },
    required: ['query'],
  },
  run: async (params: { query: string; fileTypes?: string[] }) => {
    console.log(`explore_codebase ${JSON.stringify(params)}`)
    const files = params.fileTypes ? ` in files: ${params.fileTypes.join(', ')}` : ''
    const turn = await explorer.query(`Find: ${params.query}${files}`)
    return turn.text
  },
}

const coder = agent({
  model: scripted([
    calls('explore_codebase', { query: 'tax', fileTypes: ['.ts'] }),
    says('tax.ts has it.'),
  ]),
  tools: [Bash, Write, explorerTool],
})
console.log((await coder.query('Where is the tax?')).response.text)

// No model of its own: `run` takes a second parameter, and the context of the call has the caller's.
const helper = agent({ tools: [Read], system: 'You help with tasks.' })
const seen: AgentContext[] = []
const task = {
  type: 'object',
  properties: { task: { type: 'string' } },
  required: ['task'],
} as const
const helperTool: Tool = {
  name: 'helper',
  description: 'Helps with a task.',
  parameters: task,
  run: async (params: { task: string }, context: AgentContext) => {
    seen.push(context)
    const { parentModel, parentConfig } = context
    const effective = helper.model
      ? agent({ ...helper, model: helper.model })
      : agent({ ...helper, model: parentModel, ...(parentConfig && { config: parentConfig }) })
    return (await effective.query(params.task)).response.text
  },
}
const model = scripted([calls('helper', { task: 'Say it.' }), says('It.'), says('Done.')])
const lead = agent({ model, tools: [helperTool] })
await lead.query('Let someone help.')
console.log(
  `helper ran with the caller's model: ${seen[0]?.parentModel === model}, for agent coder: ${seen[0]?.agentId === lead.id}`,
)

// The same with everything included: events, traces, tokens, abort and interrupts.
const shared = subagent({
  name: 'helper',
  description: 'Helps with a task.',
  parameters: task,
  agent: helper,
  prompt: (args: { task: string }) => args.task,
})
const answers = scripted([
  calls('helper', { task: 'Find it.' }),
  says('tax.ts has it.'),
  says('Ok.'),
])
const { state } = await agent({ model: answers, tools: [shared] }).generate(
  'Go.',
  AgentState.initial(),
)
console.log(`shared helper: ${state.subagentTraces[0]?.result}`)
// #endregion program
