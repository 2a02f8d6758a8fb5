/**
 * From a thread to a vendor's request: the thread becomes UPP messages, with a report of what they cannot hold, and the
 * vendor's wire writes them. A signature that one vendor put on its thinking is never sent to another.
 *
 * Prints:
 *
 *     lost: /turns/1/messages/0/parts/0/signature
 *     lost: /turns/1/messages/0/parts/0/provider_name
 *     POST https://api.openai.com/v1/responses
 *     user: Is it raining in Oslo?
 *     assistant: Yes, take a coat.
 *     user: And tomorrow?
 *     Dry all day.
 */

// #region program
import { llm, type Fetch } from '@skein/ai'
import { openai } from '@skein/ai/openai'
import type { Thread } from '@skein/threads'
import { toUppMessages } from '@skein/threads/upp'

const at = '2026-03-01T09:00:00Z'
const thread: Thread = {
  version: '2.0.0',
  thread_id: 't1',
  created_at: at,
  updated_at: at,
  agents: { ada: { agent_id: 'ada', agent_name: 'Ada', created_at: at } },
  turns: [
    {
      turn_type: 'user',
      submitted_at: at,
      parts: [{ part_kind: 'user-prompt', content: 'Is it raining in Oslo?' }],
    },
    {
      turn_type: 'agent',
      agent_id: 'ada',
      started_at: at,
      completed_at: at,
      messages: [
        {
          message_type: 'response',
          timestamp: at,
          agent_id: 'ada',
          parts: [
            {
              part_kind: 'thinking',
              content: 'The forecast says rain.',
              signature: 'EqQBCkYIAR',
              provider_name: 'anthropic',
            },
            { part_kind: 'text', content: 'Yes, take a coat.' },
          ],
        },
      ],
    },
  ],
}

const { value: history, lost } = toUppMessages(thread)
for (const { pointer } of lost) if (pointer.includes('/parts/')) console.log('lost:', pointer)

/** Stands in for the vendor: prints the request that the wire wrote, and answers. */
const fetch: Fetch = async (url, { method, body }) => {
  console.log(method, url)
  const { input } = JSON.parse(String(body)) as { input: { role?: string; content?: unknown }[] }
  for (const { role, content } of input) {
    const [block] = content as { text: string }[]
    console.log(`${role}: ${block?.text}`)
  }
  const content = [{ type: 'output_text', text: 'Dry all day.', annotations: [] }]
  const output = [{ type: 'message', id: 'm1', role: 'assistant', status: 'completed', content }]
  return Response.json({ id: 'r1', object: 'response', status: 'completed', model: 'any', output })
}

const model = llm({ model: openai('any', { api: 'responses' }), config: { fetch, apiKey: 'key' } })
const turn = await model.generate(history, 'And tomorrow?')
console.log(turn.text)
// #endregion program
