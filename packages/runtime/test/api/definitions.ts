import { z } from 'zod'
import { says, scripted } from '@skein/ai/testing'
import { defineAgent } from '../../src/definitions/define-agent.ts'
import { defineEffect } from '../../src/definitions/define-effect.ts'
import { defineHook, definePrompt } from '../../src/definitions/define.ts'
import { defineTool } from '../../src/definitions/define-tool.ts'
import { type RegistryOptions } from '../../src/definitions/load/registry.ts'

const model = scripted([says('x')])
const pay = defineTool({
  name: 'pay',
  description: 'Pays.',
  risk: 'write_high_risk',
  rollback: 'impossible',
  args: z.object({ amount: z.number() }),
  execute: () => 'paid',
})
const workerPrompt = definePrompt({
  name: 'work',
  prompt: 'Work.',
  model,
  variables: [
    { name: 'API_KEY', type: 'secret', required: true, scoped: true },
    { name: 'REGION', type: 'text', required: true, scoped: true },
  ],
})
const worker = defineAgent({
  name: 'worker',
  type: 'dual_ai',
  maxSessionTurns: 4,
  sideA: { prompt: workerPrompt },
  sideB: { prompt: definePrompt({ name: 'review', prompt: 'Review.', model }) },
  exposeAsTool: true,
  toolDescription: 'Works.',
})
const prompt = definePrompt({
  name: 'main',
  prompt: 'Hi.',
  model,
  tools: [pay, { name: worker, blocking: false }],
  variables: [{ name: 'TOKEN', type: 'secret' }],
})
const clean = defineEffect({ name: 'clean', execute: async () => undefined })
const greet = defineHook({ id: 'greet', hook: 'after_thread_created', execute: () => undefined })

/** One agent with a tool that needs approval and a child, one that begins by itself. */
export const definitions: RegistryOptions = {
  agents: [
    defineAgent({ name: 'support', sideA: { prompt } }),
    defineAgent({ name: 'greeter', sideA: { prompt }, hooks: [greet] }),
    worker,
  ],
  effects: [clean],
}
