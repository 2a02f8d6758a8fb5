/**
 * Working with a thread: fork it before the last turn, see where the two part, count what it cost, and take out a secret.
 *
 * Prints:
 *
 *     fork: 1 turn, from t1
 *     common turns: 1, differences: /turns/1 removed
 *     3 tokens in, 2 out, cost 0.30
 *     redacted at /turns/1/messages/0/parts/0/content: The code is [redacted].
 */

// #region program
import { diffThreads, forkThread, redactThread, threadStats, type Thread } from '@skein/threads'

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
      parts: [{ part_kind: 'user-prompt', content: 'The code?' }],
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
          parts: [{ part_kind: 'text', content: 'The code is 4711.' }],
          usage: { input_tokens: 2, output_tokens: 1, cost: '0.1' },
        },
        {
          message_type: 'response',
          timestamp: now,
          agent_id: 'ada',
          parts: [],
          usage: { input_tokens: 1, output_tokens: 1, cost: '0.20' },
        },
      ],
    },
  ],
}

const fork = forkThread(thread, { turns: 1, relation: 'regenerate' })
console.log(`fork: ${fork.turns.length} turn, from ${fork.parent_thread_id}`)

const { commonTurns, differences } = diffThreads(thread, fork)
const inTurns = differences.filter(({ pointer }) => pointer.startsWith('/turns'))
console.log(
  `common turns: ${commonTurns}, differences: ${inTurns.map(({ pointer, kind }) => `${pointer} ${kind}`).join()}`,
)

// Costs are decimal text and stay exact: 0.1 + 0.20 is 0.30.
const { usage, cost } = threadStats(thread).usage
console.log(`${usage.input_tokens} tokens in, ${usage.output_tokens} out, cost ${cost}`)

const { thread: clean, redacted } = redactThread(thread, { secrets: ['4711'] })
const [, turn] = clean.turns
const [message] = turn?.turn_type === 'agent' ? turn.messages : []
const [part] = message && 'parts' in message ? message.parts : []
console.log(
  `redacted at ${redacted.join()}: ${part && 'content' in part ? String(part.content) : ''}`,
)
// #endregion program
