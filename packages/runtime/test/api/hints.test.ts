import { afterEach, expect, test } from 'vitest'
import { anthropic } from '@skein/ai/anthropic'
import { fails, scripted } from '@skein/ai/testing'
import { createRuntime, defineAgent, definePrompt, type EmbeddedRuntime } from '../../src/index.ts'
import { threadView } from '../../src/view/index.ts'

let runtime: EmbeddedRuntime | undefined
afterEach(() => runtime?.stop({ graceMs: 0 }))

const hint = expect.stringContaining('ANTHROPIC_API_KEY')

test('the hint of a missing key reaches every event, the result, the log of requests and the view', async () => {
  const key = process.env['ANTHROPIC_API_KEY']
  delete process.env['ANTHROPIC_API_KEY']
  try {
    const prompt = definePrompt({ name: 'keyless', prompt: 'Hi.', model: anthropic('claude-x') })
    runtime = await createRuntime({ agents: [defineAgent({ name: 'keyless', sideA: { prompt } })] })
    await runtime.start()
    const { threads } = runtime
    const { id } = await threads.create({ agent: 'keyless' })
    const result = await threads.run(id, 'Hello')
    expect(result).toMatchObject({ outcome: 'failed', reason: 'model_error', hint })
    expect(await threads.settled(id)).toMatchObject({ hint })
    const log = await threads.events(id)
    const of = (type: string) => log.find(({ event }) => event.type === type)?.event
    expect(of('model_answered')).toMatchObject({ error: { hint } })
    expect(of('step_failed')).toMatchObject({ hint })
    expect(of('session_end')).toMatchObject({ hint })
    expect(await threads.logs(id)).toMatchObject([{ error: { hint } }])
    const view = threadView(log)
    expect(view.result).toMatchObject({ hint })
    expect(view.failures).toMatchObject([{ hint }, { hint }])
    await threads.erase(id)
    expect(JSON.stringify(await threads.events(id))).not.toContain('ANTHROPIC')
  } finally {
    if (key !== undefined) process.env['ANTHROPIC_API_KEY'] = key
  }
})

test('a failure without a hint has no member for it', async () => {
  const model = scripted([fails({ code: 'INVALID_REQUEST', message: 'The model is ill.' })])
  const prompt = definePrompt({ name: 'ill', prompt: 'Hi.', model })
  runtime = await createRuntime({ agents: [defineAgent({ name: 'ill', sideA: { prompt } })] })
  await runtime.start()
  const { id } = await runtime.threads.create({ agent: 'ill' })
  const result = await runtime.threads.run(id, 'Hello')
  expect(result.outcome).toBe('failed')
  expect(result).not.toHaveProperty('hint')
  for (const { event } of await runtime.threads.events(id))
    if (event.type === 'model_answered') expect(event.error).not.toHaveProperty('hint')
})
