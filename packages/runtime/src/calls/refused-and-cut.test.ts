import { expect, test } from 'vitest'
import { calls, says, scripted, waits } from '@skein/ai/testing'
import type { Policy } from '@skein/governance'
import { createRuntime, defineAgent, defineHook, definePrompt, defineTool } from '../index.ts'

test('a refused write whose hook still runs when a message cuts the turn ends once', async () => {
  let begin = (): void => {}
  const begun = new Promise<void>((resolve) => (begin = resolve))
  const hook = defineHook({
    id: 'slow',
    hook: 'after_tool_call_failure',
    execute: async () => {
      begin()
      await new Promise((resolve) => setTimeout(resolve, 80))
      return undefined
    },
  })
  const write = defineTool({
    name: 'write',
    description: '',
    risk: 'write_low_risk',
    execute: () => 'written',
  })
  const policy: Policy = {
    id: 'none',
    hash: `sha256:${'0'.repeat(64)}`,
    decide: () => ({ effect: 'deny', code: 'NO' }),
  }
  // The second answer takes longer than the hook.
  const model = scripted([[calls('write', {})], [waits(200), says('Done.')]])
  const prompt = definePrompt({ name: 'p', prompt: '', model, tools: [write], hooks: [hook] })
  const agents = [defineAgent({ name: 'a', sideA: { prompt } })]
  const runtime = await createRuntime({ agents, policy })
  await runtime.start()
  const { id } = await runtime.threads.create({ agent: 'a', message: 'go' })
  await begun
  await runtime.threads.send(id, { text: 'Something else.', ifBusy: 'cut' })
  await runtime.idle()
  const events = (await runtime.threads.events(id)).map(({ event }) => event)
  expect(events.filter(({ type }) => type === 'tool_execution_end')).toHaveLength(1)
  expect(events.at(-1)).toMatchObject({ type: 'status_changed', status: 'idle' })
  await runtime.stop()
})
