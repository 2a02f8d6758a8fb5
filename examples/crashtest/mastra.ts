/**
 * Mastra: a workflow, whose runs are stored in LibSQL after each step. As its page on workflow runs advises, a run that was
 * active when the process died is restarted, which continues with its last active step. The agent decides in one step, and
 * the next one pays. (Its durable agents, which store the steps of an agent itself, are in beta and not tested here.)
 */
import { Agent } from '@mastra/core/agent'
import { Mastra } from '@mastra/core/mastra'
import { createTool } from '@mastra/core/tools'
import { createStep, createWorkflow } from '@mastra/core/workflows'
import { LibSQLStore } from '@mastra/libsql'
import { z } from 'zod'
import {
  instructions,
  modelId,
  refund,
  task,
  toolDescription,
  toolName,
  toolSchema,
} from './tool.ts'

const agent = new Agent({
  id: 'desk',
  name: 'desk',
  instructions,
  model: `openai/${modelId}`,
  // Without `execute`, the call is returned.
  tools: {
    [toolName]: createTool({ id: toolName, description: toolDescription, inputSchema: toolSchema }),
  },
})
const decide = createStep({
  id: 'decide',
  inputSchema: z.object({ task: z.string() }),
  outputSchema: toolSchema,
  execute: async ({ inputData }) => {
    const { toolCalls } = await agent.generate(inputData.task, { maxSteps: 1 })
    return toolSchema.parse(toolCalls[0]?.payload.args)
  },
})
const pay = createStep({
  id: 'pay',
  inputSchema: toolSchema,
  outputSchema: z.object({ text: z.string() }),
  execute: async ({ inputData }) => ({ text: await refund(inputData) }),
})
const workflow = createWorkflow({
  id: 'refund',
  inputSchema: z.object({ task: z.string() }),
  outputSchema: z.object({ text: z.string() }),
})
  .then(decide)
  .then(pay)
  .commit()

const runId = 'refund O-7'
const mastra = new Mastra({
  workflows: { workflow },
  storage: new LibSQLStore({ id: 'state', url: 'file:state.db' }),
  logger: false,
})
const stored = await mastra.getWorkflow('workflow').getWorkflowRunById(runId)
const run = await mastra.getWorkflow('workflow').createRun({ runId })
if (stored?.status === 'success') console.log('It is done already.')
else {
  const hasBegun = stored !== null && stored.status !== 'pending'
  const result = hasBegun ? await run.restart() : await run.start({ inputData: { task } })
  console.log(result.status, result.status === 'success' ? result.result.text : '')
  process.exitCode = result.status === 'success' ? 0 : 1
}
