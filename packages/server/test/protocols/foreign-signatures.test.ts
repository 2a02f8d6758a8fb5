import { expect, test } from 'vitest'
import { llm, type Fetch, type ModelReference } from '@skein/ai'
import { anthropic } from '@skein/ai/anthropic'
import { google } from '@skein/ai/google'
import { openai } from '@skein/ai/openai'
import type { Thread, ThreadMessage } from '@skein/threads'
import { toUppMessages } from '@skein/threads/upp'

const at = '2026-03-01T09:00:00Z'
const SIGNATURE = 'EqQBCkYIARcanary'

/** Thinking that Anthropic signed: as Pydantic AI stores it, or as a UPP message of ours carries it. */
const signed: Readonly<Record<string, object>> = {
  'a thread part': { signature: SIGNATURE, provider_name: 'anthropic', thinking_id: SIGNATURE },
  'UPP metadata': {
    upp_metadata: {
      anthropic: { api: 'anthropic-messages', native: { type: 'thinking', signature: SIGNATURE } },
    },
  },
}

const models: Readonly<Record<string, ModelReference>> = {
  'OpenAI Responses': openai('any', { api: 'responses' }),
  'OpenAI Chat Completions': openai('any', { api: 'chat' }),
  Google: google('any'),
  Anthropic: anthropic('any'),
}

async function requestOf(model: ModelReference, fields: object): Promise<string> {
  const message = {
    message_type: 'response',
    timestamp: at,
    agent_id: 'ada',
    parts: [
      { part_kind: 'thinking', content: 'Rain.', ...fields },
      { part_kind: 'text', content: 'Take a coat.' },
    ],
  } as ThreadMessage
  const thread: Thread = {
    version: '2.0.0',
    thread_id: 't1',
    created_at: at,
    updated_at: at,
    agents: { ada: { agent_id: 'ada', agent_name: 'Ada', created_at: at } },
    turns: [
      { turn_type: 'user', submitted_at: at, parts: [{ part_kind: 'user-prompt', content: 'Hi' }] },
      {
        turn_type: 'agent',
        agent_id: 'ada',
        started_at: at,
        completed_at: at,
        messages: [message],
      },
    ],
  }
  let sent = ''
  const fetch: Fetch = async (_, { body }) => {
    sent = String(body)
    return new Response('{}', { status: 400 })
  }
  const config = { fetch, apiKey: 'key' }
  await llm({ model, config, params: {} })
    .generate(toUppMessages(thread).value, 'And tomorrow?')
    .catch(() => undefined)
  expect(sent).toContain('Take a coat.')
  return sent
}

test.each(Object.keys(signed))(
  'a signature in %s is sent to no vendor but the one that made it',
  async (place) => {
    for (const [name, model] of Object.entries(models)) {
      const sent = await requestOf(model, signed[place]!)
      if (name !== 'Anthropic') expect(sent, name).not.toContain(SIGNATURE)
    }
  },
)

test('the vendor that made it gets it back', async () => {
  expect(await requestOf(models['Anthropic']!, signed['UPP metadata']!)).toContain(SIGNATURE)
})
