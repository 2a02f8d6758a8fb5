/**
 * Skein: the runtime stores each step in SQLite. Started again, it continues. The refund is a high-risk write, so a person
 * approves it; here the program does. `probe` asks the bank when a call was running as the process died. Without it
 * (`no-probe`) a person is asked whether the money left, which this program reports with exit code 3.
 */
import { openai } from '@skein/ai/openai'
import { createRuntime, defineAgent, defineTool, type WaitingItem } from '@skein/runtime'
import {
  instructions,
  modelId,
  refund,
  task,
  toolDescription,
  toolName,
  toolSchema,
} from './tool.ts'

const hasProbe = !process.argv.includes('no-probe')
const refundTool = defineTool({
  name: toolName,
  description: toolDescription,
  args: toolSchema,
  risk: 'write_high_risk',
  rollback: 'impossible',
  probe: hasProbe ? ({ order }) => askBank(order) : undefined,
  execute: (_, args) => refund(args),
})
const desk = defineAgent({
  name: 'desk',
  instructions,
  model: openai(modelId),
  tools: [refundTool],
})
const runtime = await createRuntime({
  agents: [desk],
  folder: 'state',
  keepsSecretKeyWithData: true,
})
await runtime.start()
const [existing] = await runtime.threads.list()
const { id } = existing ?? (await runtime.threads.create({ agent: 'desk', message: task }))
for (const { threadId, interruptId } of await approvals(id))
  await runtime.inbox.approve({ threadId, interruptId, by: 'pat' })
const { outcome, text, reason } = await runtime.threads.settled(id)
console.log(`${outcome}: ${text || reason}`)
await runtime.stop()
process.exitCode = outcome === 'completed' ? 0 : outcome === 'waiting' ? 3 : 1

async function approvals(threadId: string): Promise<readonly WaitingItem[]> {
  const { waiting } = await runtime.threads.settled(threadId)
  return waiting.filter(({ kind }) => kind === 'approval')
}

async function askBank(order: string): Promise<'applied' | 'absent'> {
  const response = await fetch(`https://bank.test/refunds/${order}`)
  const { paid } = (await response.json()) as { readonly paid: boolean }
  return paid ? 'applied' : 'absent'
}
