/**
 * A tool that computes for long runs in a worker thread, so that no one else waits. Its `timeoutMs` ends even an
 * endless loop; the model reads that as the result of the call.
 *
 * Prints:
 *
 *     prime(10000) = 104729
 *     prime(-1): The tool "prime" took longer than 2000 ms and was stopped.
 */

// #region program
import { calls, says, scripted } from '@skein/ai/testing'
import { createRuntime, defineAgent, defineTool, inWorker } from '@skein/runtime'
import { z } from 'zod'

const prime = defineTool({
  name: 'prime',
  description: 'The nth prime number.',
  args: z.object({ n: z.number() }),
  risk: 'read_only',
  timeoutMs: 2_000,
  execute: inWorker(new URL('./prime-worker.ts', import.meta.url)),
})
const model = scripted(({ messages }) => {
  const last = messages.at(-1)!
  if (last.type === 'tool_result') return says(String(last.results[0]!.result))
  return calls('prime', { n: Number(last.type === 'user' ? last.text : 0) })
})
const maths = defineAgent({ name: 'maths', instructions: 'You compute.', model, tools: [prime] })

const runtime = await createRuntime({ agents: [maths] })
await runtime.start()
const thread = await runtime.threads.create({ agent: 'maths' })
console.log(`prime(10000) = ${(await runtime.threads.run(thread.id, '10000')).text}`)
console.log(`prime(-1): ${(await runtime.threads.run(thread.id, '-1')).text}`)
await runtime.stop()
// #endregion program
