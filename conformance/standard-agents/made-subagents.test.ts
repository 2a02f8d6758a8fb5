// The same agent by itself and as a child: what it does and how its sessions end.
import { describe, expect, test } from 'vitest'
import { calls, says, type ScriptFunction } from '@skein/ai/testing'
import { asSubagent, type AgentDefinition, type RuntimeEvent } from '@skein/runtime'
import { linesOf, pair, requestsOf, solo, tool, type SideSetup } from './support/agents.ts'
import { simulate, type Simulation } from './support/simulate.ts'

const look = tool('look')
const quit = tool('quit', (state, args) => void state.stopSession(args))
const side = {
  tools: [look, tool('hand'), tool('end'), tool('fail'), quit],
  stopTool: 'hand',
  stopToolResponseProperty: 'text',
  sessionStop: { name: 'end', messageProperty: 'text' },
  sessionFail: { name: 'fail', messageProperty: 'text' },
}

/** A parent that calls the agent once. */
const boss = (agent: AgentDefinition) =>
  solo('boss', { script: [calls(agent.name, { message: 'go' }), says('So.')], tools: [agent] })

const endings: readonly [ends: string, step: ReturnType<ScriptFunction>, isFailure?: true][] = [
  ['a response', says('It is 42.')],
  ['the stop tool', calls('hand', { text: 'It is 42.' })],
  ['the stop tool, with text next to it', [says('It is 42.'), calls('hand')]],
  ['sessionStop', calls('end', { text: 'It is 42.' })],
  ['sessionFail', calls('fail', { text: 'It is 42.' }), true],
  ['a tool that stops the session', calls('quit', { result: 'It is 42.' })],
  ['a tool that fails the session', calls('quit', { result: 'It is 42.', failed: true }), true],
]

describe('an agent made a subagent', () => {
  test.each(endings)(
    'SA-01 SA-18 SA-22 ends with %s, by itself and as a child',
    async (_, step, isFailure) => {
      const script: SideSetup['script'] = ({ messages }) =>
        messages.at(-1)!.type === 'user' ? calls('look') : step
      const plain = solo('plain', { ...side, script }, { description: 'Counts.' })
      const made = asSubagent(plain, { name: 'made' })
      const parent = boss(made)
      const it = await simulate({ agents: [parent, plain, made] })
      const results = []
      for (const agent of ['plain', 'made']) {
        const id = await it.create({ agent })
        const { outcome, reason, text } = await it.run(id, 'go')
        const turns = (await it.events(id, 'turn_start')).map(({ agentId }) => agentId)
        results.push({ outcome, reason, text, turns })
      }
      const [first, second] = results
      expect(first).toMatchObject({
        outcome: isFailure ? 'failed' : 'completed',
        text: 'It is 42.',
        turns: ['plain/a'],
      })
      expect(second).toEqual({ ...first, turns: ['made/a'] })
      await it.ask('hi')
      expect(linesOf(requestsOf(parent)[1]).at(-1)).toBe(
        `tool_result: made ${isFailure ? '! It is 42.' : '= "It is 42."'}`,
      )
    },
  )
})

/** What happens in the sessions of a thread, without ids and times. */
async function sessionsOf(it: Simulation, id: string): Promise<unknown> {
  const types: readonly RuntimeEvent['type'][] = [
    'session_start',
    'turn_start',
    'step_start',
    'tool_execution_start',
    'tool_execution_end',
    'step_end',
    'turn_end',
    'session_end',
  ]
  const events = (await it.threads.events(id)).map(({ event }) => event)
  const text = JSON.stringify(events.filter(({ type }) => types.includes(type)))
  const plain = text
    .replaceAll(/[0-9a-f]{8}-0000-7000-8000-[0-9a-f]{12}/g, 'id')
    .replaceAll(/\d{4}-\d\d-\d\dT[\d:.]+Z/g, 'time')
  return JSON.parse(plain)
}

test.each(endings)(
  'SA-01 SA-18 SA-36 a pair whose side B ends with %s leaves the same events by itself and as a child',
  async (_, step) => {
    const both = pair('both', {
      a: { script: () => says('Draft.') },
      b: { ...side, script: ({ messages }) => (messages.length > 3 ? step : calls('look')) },
    })
    const last = { ...both, maxSessionTurns: 4 }
    const it = await simulate({ agents: [boss(last), last] })
    const alone = await it.create({ agent: 'both' })
    await it.run(alone, 'go')
    const { id } = await it.ask('hi')
    const [made] = await it.events(id, 'subagent_created')
    const events = await sessionsOf(it, alone)
    expect(events).not.toEqual([])
    expect(await sessionsOf(it, made!.reference)).toEqual(events)
    // Nothing was reported, because there is no one to report to.
    const [end] = await it.events(alone, 'session_end')
    expect(end!.isUndelivered).toBeUndefined()
  },
)
