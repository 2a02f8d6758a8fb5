/**
 * Every bridge says what the other side could not hold: here a thread goes to Anthropic's messages and comes back.
 *
 * Prints:
 *
 *     user: Hello.
 *     assistant: [{"type":"text","text":"Hi."}]
 *     lost: /turns/1/messages/0/usage (Anthropic messages have no field for it)
 *     lost: /turns/1/messages/1 (Anthropic messages have no system events)
 *     back: user, agent
 */

// #region program
import type { Thread } from '@skein/threads'
import { fromAnthropicMessages, toAnthropicMessages } from '@skein/threads/anthropic'

const now = '2026-03-01T09:00:00Z'
const thread: Thread = {
  version: '2.0.0',
  thread_id: 't1',
  created_at: now,
  updated_at: now,
  agents: { ada: { agent_id: 'ada', agent_name: 'Ada', created_at: now } },
  turns: [
    {
      turn_type: 'user',
      submitted_at: now,
      parts: [{ part_kind: 'user-prompt', content: 'Hello.' }],
    },
    {
      turn_type: 'agent',
      agent_id: 'ada',
      started_at: now,
      completed_at: now,
      messages: [
        {
          message_type: 'response',
          timestamp: now,
          agent_id: 'ada',
          parts: [{ part_kind: 'text', content: 'Hi.' }],
          usage: { input_tokens: 3, output_tokens: 2 },
        },
        { message_type: 'system', timestamp: now, event_type: 'app.greeted', event_data: {} },
      ],
    },
  ],
}

const { value: messages, lost } = toAnthropicMessages(thread)
for (const { role, content } of messages) {
  console.log(`${role}: ${typeof content === 'string' ? content : JSON.stringify(content)}`)
}
// Times, ids and attribution are in the list too; here only what carries content.
for (const { pointer, reason } of lost) {
  if (pointer.endsWith('/usage') || reason.includes('events'))
    console.log(`lost: ${pointer} (${reason})`)
}

const back = fromAnthropicMessages(messages, { thread: { thread_id: 't1', agents: thread.agents } })
console.log('back:', back.value.turns.map((turn) => turn.turn_type).join(', '))
// #endregion program
