// The server of a soak: a runtime on SQLite with default limits, behind HTTP. Its parent asks it for numbers.
import { join } from 'node:path'
import { monitorEventLoopDelay } from 'node:perf_hooks'
import { getHeapStatistics, writeHeapSnapshot } from 'node:v8'
import { openaiCompatible } from '@skein/ai/openai-compatible'
import {
  createRuntime,
  defineAgent,
  defineEffect,
  defineModel,
  definePrompt,
  defineTool,
  type AgentDefinition,
  type ModelDefinition,
} from '@skein/runtime'
import { serve } from '@skein/server'
import { z } from 'zod'
import { KEY, type Held, type ServerAnswer, type ServerQuestion } from './protocol.ts'

const [folder = '', vendorUrl = ''] = process.argv.slice(2)
let errors = 0
const onError = (error: unknown): void => {
  errors += 1
  if (errors <= 20) console.error(error)
}
const runtime = await createRuntime({
  agents: [desk()],
  effects: [defineEffect({ name: 'remind', execute: (state) => state.setValue('reminded', true) })],
  folder: join(folder, 'data'),
  secretKey: new Uint8Array(32).fill(7),
  onError,
})
await runtime.start()
const serving = await serve(runtime, {
  port: 0,
  auth: { keys: [{ key: KEY, tenant: 'soak', user: 'ann', scopes: ['admin'] }] },
  onError,
})
const delay = monitorEventLoopDelay({ resolution: 10 })
delay.enable()

process.on('message', (question: ServerQuestion) => void answer(question))
process.on('disconnect', () => process.exit(0))
tell({ type: 'ready', url: serving.url })

async function answer(question: ServerQuestion): Promise<void> {
  switch (question.type) {
    case 'held':
      return tell({ type: 'held', held: await held() })
    case 'snapshot':
      return tell({ type: 'snapshot', path: writeHeapSnapshot(question.path) })
    case 'stop':
      await serving.close({ graceMs: 2000 })
      await runtime.stop({ graceMs: 2000 })
      process.exit(0)
  }
}

/** What is held after a collection. Finalizers run between two collections, and free more. */
async function held(): Promise<Held> {
  for (let round = 0; round < 3; round++) {
    globalThis.gc?.()
    await new Promise((resolve) => setImmediate(resolve))
  }
  const { rss, external, arrayBuffers } = process.memoryUsage()
  const { user, system } = process.cpuUsage()
  const stallMs = delay.max / 1e6
  delay.reset()
  return {
    heap: getHeapStatistics().used_heap_size,
    external,
    arrayBuffers,
    rss,
    handles: process.getActiveResourcesInfo().length,
    stallMs,
    cpuMs: (user + system) / 1000,
    errors,
  }
}

function tell(message: ServerAnswer): void {
  process.send?.(message)
}

/** An agent with a tool, a tool that needs an approval, and a child. */
function desk(): AgentDefinition {
  const note = defineTool({
    name: 'note',
    description: 'Takes a note.',
    args: z.object({ text: z.string() }),
    risk: 'write_low_risk',
    execute: (_, { text }) => text,
  })
  const pay = defineTool({
    name: 'pay',
    description: 'Pays.',
    args: z.object({ amount: z.number() }),
    risk: 'write_high_risk',
    rollback: ({ amount }) => ({
      type: 'tool_call',
      target: 'note',
      payload: { text: `${amount}` },
    }),
    execute: (_, { amount }) => `Paid ${amount}.`,
  })
  const finish = defineTool({
    name: 'finish',
    description: 'Ends the work.',
    args: z.object({ text: z.string() }),
    risk: 'read_only',
    execute: (_, { text }) => text,
  })
  const worker = defineAgent({
    name: 'worker',
    type: 'dual_ai',
    exposeAsTool: true,
    toolDescription: 'Does the work.',
    maxSessionTurns: 6,
    sideA: {
      prompt: definePrompt({
        name: 'worker_a',
        prompt: 'Work.',
        model: model('worker'),
        tools: [finish],
        requiredSchema: z.object({ task: z.string() }),
      }),
      sessionStop: { name: finish, messageProperty: 'text' },
    },
    sideB: {
      prompt: definePrompt({ name: 'worker_b', prompt: 'Review.', model: model('reviewer') }),
    },
  })
  return defineAgent({
    name: 'desk',
    sideA: {
      prompt: definePrompt({
        name: 'desk',
        prompt: 'Help.',
        model: model('desk'),
        tools: [note, pay, { name: worker, initUserMessageProperty: 'task' }],
      }),
    },
  })
}

function model(id: string): ModelDefinition {
  return defineModel({
    name: id,
    model: openaiCompatible({ name: 'soak', baseUrl: vendorUrl })(id),
    config: { apiKey: 'sk-soak' },
  })
}
