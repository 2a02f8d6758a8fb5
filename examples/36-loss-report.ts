/**
 * Every bridge says what the other side could not hold: here a thread becomes UPP messages and comes back.
 *
 * Prints:
 *
 *     user: [{"type":"text","text":"Hello."}]
 *     assistant: [{"type":"text","text":"Hi."}]
 *     lost: /turns/1/messages/0/agent_id (UPP has no field for it)
 *     lost: /turns/1/messages/0/usage (UPP has no field for it)
 *     lost: /turns/1/messages/1 (UPP has no system events)
 *     back: user, agent
 */

// #region program
import type { Thread } from '@skein/threads'
import { fromUppMessages, toUppMessages } from '@skein/threads/upp'

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

const { value: messages, lost } = toUppMessages(thread)
for (const { type, content } of messages) console.log(`${type}: ${JSON.stringify(content)}`)
// Agents and turns are in the list too; here only what concerns messages.
for (const { pointer, reason } of lost) {
  if (pointer.includes('/messages/')) console.log(`lost: ${pointer} (${reason})`)
}

const back = fromUppMessages(messages, { thread: { thread_id: 't1', agents: thread.agents } })
console.log('back:', back.value.turns.map((turn) => turn.turn_type).join(', '))
// #endregion program
