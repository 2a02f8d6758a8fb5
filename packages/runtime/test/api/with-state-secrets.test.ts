import { says, scripted } from '@skein/ai/testing'
import { createRuntime, defineAgent, definePrompt } from '@skein/runtime'
import { expect, test } from 'vitest'

test('code with the state of a thread leaks no secret into its log, old or just set', async () => {
  const prompt = definePrompt({ name: 'p', prompt: 'Hi.', model: scripted(() => says('Hello.')) })
  const runtime = await createRuntime({ agents: [defineAgent({ name: 'a', sideA: { prompt } })] })
  const { id } = await runtime.threads.create({ agent: 'a', secrets: { TOKEN: 'canary-one-1234' } })
  await runtime.withState(id, async (state) => {
    state.setEnv('OTHER', 'canary-two-5678', { type: 'secret' })
    state.setValue('kept', `${state.env('TOKEN')} and ${state.env('OTHER')}`)
    await state.emit('said', `${state.env('TOKEN')} and ${state.env('OTHER')}`)
  })
  const log = JSON.stringify(await runtime.threads.events(id))
  expect(log).toContain('"said"')
  expect(log).not.toContain('canary')
  await runtime.stop()
})
