/**
 * An agent over A2A: the client of the A2A SDK reads its card, sends a message and decides about the call that
 * the task waits for. The digest says what was decided about.
 *
 * Prints:
 *
 *     card: refunds
 *     input required: refund {"amount":25}
 *     completed: Refunded 25.
 */

// #region program
import { ClientFactory } from '@a2a-js/sdk/client'
import { type Message, Role, type Task, TaskState } from '@a2a-js/sdk'
import { createRuntime, defineAgent, defineTool } from '@skein/runtime'
import { serve } from '@skein/server'
import { calls, says, scripted } from '@skein/ai/testing'
import { z } from 'zod'

const refund = defineTool({
  name: 'refund',
  description: 'Pays money back.',
  args: z.object({ amount: z.number() }),
  risk: 'write_high_risk',
  rollback: 'impossible',
  execute: (_, { amount }) => `Refunded ${amount}.`,
})
const model = scripted(({ messages }) => {
  const last = messages.at(-1)!
  if (last.type === 'tool_result') return says(String(last.results[0]!.result))
  return calls('refund', { amount: 25 })
})
const runtime = await createRuntime({
  agents: [defineAgent({ name: 'refunds', instructions: 'You refund.', model, tools: [refund] })],
})
await runtime.start()
const server = await serve(runtime, { port: 0, auth: 'none' })

const client = await new ClientFactory().createFromUrl(server.url)
console.log(`card: ${(await client.getAgentCard()).name}`)

type Content = Message['parts'][number]['content']
const send = async (content: Content, task?: Task): Promise<Task> => {
  const message: Message = {
    messageId: crypto.randomUUID(),
    contextId: task?.contextId ?? '',
    taskId: task?.id ?? '',
    role: Role.ROLE_USER,
    parts: [{ content, metadata: undefined, filename: '', mediaType: '' }],
    metadata: undefined,
    extensions: [],
    referenceTaskIds: [],
  }
  const request = { tenant: '', message, configuration: undefined, metadata: undefined }
  return (await client.sendMessage(request)) as Task
}
const task = await send({ $case: 'text', value: 'Please refund order O-7.' })
const [, asked] = task.status!.message!.parts
const { waiting } = asked!.content!.value as {
  waiting: { interruptId: string; digest: string; tool: string; arguments: object }[]
}
const { interruptId, digest, tool, arguments: args } = waiting[0]!
if (task.status!.state === TaskState.TASK_STATE_INPUT_REQUIRED)
  console.log(`input required: ${tool} ${JSON.stringify(args)}`)
const decision = { interruptId, digest, decision: 'approve' }
const done = await send({ $case: 'data', value: decision }, task)
if (done.status!.state === TaskState.TASK_STATE_COMPLETED)
  console.log(`completed: ${done.artifacts[0]!.parts[0]!.content!.value}`)
// #endregion program

await server.close()
await runtime.stop()
