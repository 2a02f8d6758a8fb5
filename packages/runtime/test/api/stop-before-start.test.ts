import { says, scripted } from '@skein/ai/testing'
import { createRuntime, defineAgent, definePrompt } from '@skein/runtime'
import { expect, test } from 'vitest'

test('a stop before the first step holds the message until a person goes on', async () => {
  const model = scripted(() => says('Hello.'))
  const prompt = definePrompt({ name: 'p', prompt: 'Hi.', model })
  const runtime = await createRuntime({ agents: [defineAgent({ name: 'a', sideA: { prompt } })] })
  const { id } = await runtime.threads.create({ agent: 'a' })
  await runtime.threads.send(id, 'one')
  await runtime.threads.stop(id)
  await runtime.start()
  await runtime.idle()
  expect(model.requests).toHaveLength(0)
  expect((await runtime.threads.get(id)).lifecycle).toBe('stopped')
  await runtime.threads.run(id, 'two')
  expect(model.requests).toHaveLength(1)
  expect(model.requests[0]!.messages.map((one) => one.type === 'user' && one.text)).toEqual([
    'one',
    'two',
  ])
  await runtime.stop()
})
