/**
 * Everything together: an engineer agent with a sub-agent, reasoning, hooks, logs and its own limits;
 * its state is stored and continued.
 *
 * Prints:
 *
 *     run started
 *     Step 1
 *     → explore
 *     ✓ explore completed
 *     Step 2
 *     → write_file
 *     ✓ write_file completed
 *     Step 3
 *     Done: within budget: true
 *     run completed
 *     tax.ts is fixed.
 *     Tests are added. It knows 20 messages.
 */

// #region program
import { agent, AgentState } from '@skein/agents'
import { react } from '@skein/agents/execution'
import { logging } from '@skein/agents/middleware'
import type { Tool } from '@skein/ai'
import { calls, says, scripted, type ScriptFunction } from '@skein/ai/testing'
import { codeTools } from './code-tools.ts'

const { Bash, Read, Write, Grep } = codeTools(new Map([['tax.ts', "const tax: number = '0.19'"]]))

// A sub-agent.
const explorer = agent({
  model: scripted(({ messages }) =>
    messages.at(-1)?.type === 'tool_result'
      ? says('tax.ts assigns a text to a number.')
      : calls('grep', { text: 'tax' }),
  ),
  tools: [Grep, Read],
  system: 'You explore codebases and report findings.',
})

// Its tool, written out.
const explorerTool: Tool = {
  name: 'explore',
  description: 'Explore codebase to find relevant files and code',
  parameters: {
    type: 'object',
    properties: { query: { type: 'string', description: 'What to find' } },
    required: ['query'],
  },
  run: async (params: { query: string }) => {
    const turn = await explorer.query(params.query)
    return turn.text
  },
}

/** Reasons when it has no tools, acts when it has them. */
const engineer: ScriptFunction = ({ messages, tools }) => {
  const done = messages.filter(({ type }) => type === 'tool_result').length
  if (tools.length === 0) return says(done < 2 ? 'There is work to do.' : 'That is all.')
  if (messages.some(({ text }) => text === 'Now add tests')) return says('Tests are added.')
  if (done === 0) return calls('explore', { query: 'type errors' })
  if (done === 1) return calls('write_file', { path: 'tax.ts', text: 'const tax = 0.19' })
  return says('tax.ts is fixed.')
}

const model = scripted(engineer)
const coder = agent({
  model,
  execution: react(), // no limit of its own
  tools: [Bash, Read, Write, explorerTool],
  system: 'You are an expert software engineer.',
  middleware: [
    logging({
      level: 'info',
      includeTiming: false,
      logger: (line) => console.log(line.replace(/^\[agent \S+\] /, '')),
    }),
  ],
  // At the steps of the run: the developer's own limits.
  strategy: {
    stopCondition: (state) => {
      if (state.metadata['taskComplete']) return true
      if (state.step > 50) return true
      return false
    },
    onStepStart: (step) => console.log(`Step ${step}`),
    onComplete: ({ turn }) => console.log(`Done: within budget: ${turn.usage.totalTokens < 5000}`),
  },
  // While tools run.
  toolStrategy: {
    maxIterations: Infinity,
    onToolCall: (tool) => console.log(`→ ${tool.name}`),
    onAfterCall: (tool) => console.log(`✓ ${tool.name} completed`),
  },
})

const s0 = AgentState.initial().withMetadata('startTime', Date.now())
const { turn, state } = await coder.generate('Find and fix all TypeScript errors', s0)
console.log(turn.text)

// Save the state, restore it, continue.
const storage = new Map<string, string>()
storage.set('my-task', JSON.stringify(state.toJSON()))

const restored = AgentState.fromJSON(JSON.parse(storage.get('my-task')!))
const quiet = agent({ ...coder, middleware: [], strategy: {}, toolStrategy: {} })
const { turn: t2, state: s2 } = await quiet.generate('Now add tests', restored)
console.log(`${t2.response.text} It knows ${s2.messages.length} messages.`)
// #endregion program
