/** Times of the runs that are inferred from a list of actions (1.0.0). */
import { describe, expect, test } from 'vitest'
import { at } from '../../test/samples.ts'
import { migrateThread } from './migrate.ts'
import type { AgentTurn } from './thread.ts'
import { validateThread } from './validate.ts'

const agent = (agent_id: string) => ({ agent_id, agent_name: agent_id, created_at: at(0) })

/** Migrates actions, one per second. */
function migrate(...types: readonly ('note' | 'user' | 'ada' | 'bob')[]) {
  const actions = types.map((type, index) => {
    const timestamp = at(index + 1)
    if (type === 'note') return { action_type: 'app.note', timestamp, data: index }
    if (type === 'user') return { action_type: 'user_message', timestamp, content: 'Hi' }
    return { action_type: 'assistant_message', timestamp, agent_id: type, content: 'Yes' }
  })
  return migrateThread({
    version: '1.0.0',
    thread_id: 't',
    created_at: at(0),
    updated_at: at(60),
    agents: { ada: agent('ada'), bob: agent('bob') },
    actions,
  }).value
}

describe('TP-36 a run starts with its first message and ends with its last', () => {
  test.each([
    { actions: ['ada', 'note', 'ada'], spans: [[1, 3]] },
    { actions: ['note', 'ada'], spans: [[1, 2]] },
    { actions: ['user', 'note', 'note', 'ada', 'note'], spans: [[2, 5]] },
    {
      actions: ['ada', 'note', 'bob', 'user', 'note', 'bob'],
      spans: [
        [1, 2],
        [3, 3],
        [5, 6],
      ],
    },
    {
      actions: ['user', 'note', 'ada', 'user', 'ada'],
      spans: [
        [2, 3],
        [5, 5],
      ],
    },
    { actions: ['user', 'note', 'note'], spans: [[2, 3]] },
  ] as const)('TP-36 $actions', ({ actions, spans }) => {
    const value = migrate(...actions)
    const turns = value.turns.filter((turn) => turn.turn_type === 'agent')
    expect(turns.map((turn) => [turn.started_at, turn.completed_at])).toEqual(
      spans.map((span) => span.map(at)),
    )
    for (const { started_at, completed_at, messages } of turns)
      expect([started_at, completed_at]).toEqual([
        messages[0]!.timestamp,
        messages.at(-1)!.timestamp,
      ])
    expect(validateThread(value, { profile: 'strict' }).issues).toEqual([])
  })

  test.each([
    { actions: ['note', 'user', 'ada'], start: 3 },
    { actions: ['note', 'user', 'note', 'ada'], start: 3 },
    { actions: ['user', 'note', 'user', 'ada'], start: 4 },
  ] as const)('TP-V4 but not before the turn that it follows: $actions', ({ actions, start }) => {
    const value = migrate(...actions)
    const turn = value.turns.at(-1) as AgentTurn
    expect(turn.started_at).toBe(at(start))
    expect(turn.messages.filter(({ message_type }) => message_type === 'system')).toHaveLength(
      actions.filter((action) => action === 'note').length,
    )
    expect(validateThread(value).issues).toEqual([])
  })
})
