/**
 * One thread, two agents: who sees what, which calls still wait, and what the checker says.
 *
 * Prints:
 *
 *     valid true
 *     planner sees: What should I pack? | {agent:Weather}: It will rain in Oslo. | Take a coat.
 *     waiting: book_taxi
 *     unknown_agent at /turns/1/agent_id
 */

// #region program
import { pendingToolCalls, toModelMessages, validateThread, type Thread } from '@skein/threads'

const time = (second: number): string => `2026-03-01T09:00:0${second}Z`

const thread: Thread = {
  version: '2.0.0',
  thread_id: '0197c3aa-6d43-7000-8000-000000000001',
  created_at: time(0),
  updated_at: time(4),
  agents: {
    weather: { agent_id: 'weather', agent_name: 'Weather', created_at: time(0) },
    planner: { agent_id: 'planner', agent_name: 'Planner', created_at: time(0) },
  },
  turns: [
    {
      turn_type: 'user',
      submitted_at: time(1),
      parts: [{ part_kind: 'user-prompt', content: 'What should I pack?' }],
    },
    {
      turn_type: 'agent',
      agent_id: 'weather',
      started_at: time(2),
      completed_at: time(2),
      messages: [
        {
          message_type: 'response',
          timestamp: time(2),
          agent_id: 'weather',
          parts: [{ part_kind: 'text', content: 'It will rain in Oslo.' }],
        },
      ],
    },
    {
      turn_type: 'agent',
      agent_id: 'planner',
      started_at: time(3),
      completed_at: time(3),
      messages: [
        {
          message_type: 'response',
          timestamp: time(3),
          agent_id: 'planner',
          parts: [
            { part_kind: 'text', content: 'Take a coat.' },
            { part_kind: 'tool-call', tool_name: 'book_taxi', tool_call_id: 'c1', args: {} },
          ],
        },
      ],
    },
  ],
}

console.log('valid', validateThread(thread).valid)

const seen = toModelMessages(thread, 'planner').flatMap(({ parts }) =>
  parts.flatMap((part) => ('content' in part ? [part.content] : [])),
)
console.log('planner sees:', seen.join(' | '))
console.log(
  'waiting:',
  pendingToolCalls(thread)
    .map((call) => call.tool_name)
    .join(),
)

const { planner } = thread.agents
const { issues } = validateThread({ ...thread, agents: { planner } })
console.log(`${issues[0]?.code} at ${issues[0]?.pointer}`)
// #endregion program
