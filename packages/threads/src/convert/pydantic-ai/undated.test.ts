/** Messages without a time that continue a stored thread. */
import { describe, expect, test } from 'vitest'
import { pydanticPart, pydanticRequest, pydanticResponse } from '../../../test/pydantic-samples.ts'
import { fixed } from '../../../test/pydantic-trips.ts'
import { type AgentTurn, type Thread, validateThread } from '../../index.ts'
import { fromPydanticAI, toPydanticAI } from './index.ts'

const run = (run_id: string | null) => ({ run_id })
const undated = (run_id: string | null) => ({ run_id, timestamp: null })

/** A prompt and the response to it, both with times, of one run. */
function begun(run_id: string | null) {
  const messages = [
    pydanticRequest([pydanticPart.prompt('go')], run(run_id)),
    pydanticResponse([pydanticPart.call('a', {})], run(run_id)),
  ]
  const { value, configs } = fromPydanticAI(messages, fixed)
  return { messages, thread: value, configs, last: String(messages[1]!['timestamp']) }
}

describe('TP-36 messages without a time that continue a thread', () => {
  test.each([
    ['r1', 'r1', 1],
    ['r1', 'r2', 2],
    [null, null, 2],
  ])('TP-36 the run %s, then messages of the run %s', (first, second, turns) => {
    const { messages, thread, configs, last } = begun(first)
    const added = [
      pydanticRequest([pydanticPart.answer('a', 1)].map(untimed), undated(second)),
      pydanticResponse([pydanticPart.text('done')], undated(second)),
    ]
    const { value } = fromPydanticAI(added, { ...fixed, thread, configs })
    const agentTurns = value.turns.slice(1) as AgentTurn[]
    expect(agentTurns).toHaveLength(turns)
    const times = agentTurns.flatMap((turn) => turn.messages.map(({ timestamp }) => timestamp))
    expect(times).toEqual([last, last, last])
    expect(agentTurns.at(-1)!.completed_at).toBe(last)
    expect(value.updated_at).toBe(last)
    expect(timesOutOfOrder(value)).toEqual([])
    // The export knows that they had none.
    expect(toPydanticAI(value, { configs }).value).toEqual([...messages, ...added])
  })

  test('TP-36 only the first of them has no time: it has that of the stored run, not of the next message', () => {
    const { thread, last } = begun('r1')
    const dated = pydanticResponse([pydanticPart.text('done')], run('r1'))
    const { value } = fromPydanticAI([pydanticRequest([], undated('r1')), dated], {
      ...fixed,
      thread,
    })
    const { messages, ...turn } = value.turns[1] as AgentTurn
    expect(messages.map(({ timestamp }) => timestamp)).toEqual([last, last, dated['timestamp']])
    expect(turn).toMatchObject({ started_at: last, completed_at: dated['timestamp'] })
  })

  test('TP-36 after a prompt they have its time', () => {
    const asked = pydanticRequest([pydanticPart.prompt('go')], run('r1'))
    const { value: thread } = fromPydanticAI([asked], fixed)
    const { value } = fromPydanticAI([pydanticResponse([], undated('r1'))], { ...fixed, thread })
    expect(value.turns[1]).toMatchObject({ started_at: asked['timestamp'] })
    expect(value.updated_at).toBe(asked['timestamp'])
  })
})

function untimed(part: Record<string, unknown>): Record<string, unknown> {
  return 'timestamp' in part ? { ...part, timestamp: null } : part
}

function timesOutOfOrder(thread: Thread): readonly string[] {
  const codes = validateThread(thread).issues.map(({ code }) => code)
  return codes.filter((code) => /order|overlap|before/.test(code))
}
