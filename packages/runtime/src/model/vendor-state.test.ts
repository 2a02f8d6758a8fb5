import { anthropic } from '@skein/ai/anthropic'
import { google } from '@skein/ai/google'
import { openai } from '@skein/ai/openai'
import { fallback } from '@skein/ai/routing'
import { fails, says, vendorServer } from '@skein/ai/testing'
import { expect, test } from 'vitest'
import { defineModel, definePrompt } from '../definitions/define.ts'
import { createRuntime } from '../runtime.ts'
import type { ModelReference, Params } from '@skein/ai'
import { defineAgent } from '../definitions/define-agent.ts'

const gemini = google('gemini-3.8-flash', { api: 'interactions' })
const config = (server: ReturnType<typeof vendorServer>) => ({ apiKey: 'k', fetch: server.fetch })

/** The bodies that a thread with one message sends. */
async function sent(
  server: ReturnType<typeof vendorServer>,
  model: ModelReference,
  providerOptions?: Params,
) {
  const isCombined = model.provider.name === 'fallback'
  const vendor = defineModel({
    name: 'vendor',
    model,
    ...(!isCombined && { config: config(server) }),
    ...(providerOptions && { providerOptions }),
  })
  const prompt = definePrompt({ name: 'p', model: vendor, prompt: '' })
  const agent = defineAgent({ name: 'a', sideA: { prompt } })
  const runtime = await createRuntime({ agents: [agent] })
  await runtime.start()
  await runtime.threads.create({ agent: 'a', message: 'hi' })
  await runtime.idle()
  await runtime.stop()
  return server.requests.map(({ body }) => body)
}

test('Interactions get the whole conversation and are not stored', async () => {
  const [body] = await sent(vendorServer([says('Hello.')]), gemini)
  expect(body).toMatchObject({ store: false, input: [{ type: 'user_input' }] })
  expect(body).not.toHaveProperty('previous_interaction_id')
})

test('what the user sets is sent', async () => {
  const [body] = await sent(vendorServer([says('Hello.')]), gemini, { store: true })
  expect(body).toMatchObject({ store: true })
})

test('a member of a fallback, and no other vendor', async () => {
  const server = vendorServer([fails({ code: 'PROVIDER_ERROR' }), says('Hello.')])
  const members = [openai('gpt-5'), gemini].map((model) => ({ model, config: config(server) }))
  const [first, second] = await sent(server, fallback(members))
  expect(first).not.toHaveProperty('store')
  expect(second).toMatchObject({ store: false })
})

test('other formats of Google and of others are sent nothing', async () => {
  for (const model of [google('gemini-3.8-flash'), anthropic('claude-sonnet-4-5')]) {
    const [body] = await sent(vendorServer([says('Hello.')]), model)
    expect(body).not.toHaveProperty('store')
  }
})
