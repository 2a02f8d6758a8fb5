/** Sub-agents of sub-agents: what the outermost stream says about each of them. */
import {
  agent,
  AgentState,
  subagent,
  type AgentOptions,
  type AgentStreamEvent,
} from '@skein/agents'
import type { Tool } from '@skein/ai'
import { calls, says, scripted, waits, type ScriptStep } from '@skein/ai/testing'
import { expect, test } from 'vitest'
import { custom } from './support/custom-strategy.ts'

const parameters = { type: 'object', properties: {} }

function helper(name: string, options: AgentOptions): Tool {
  return subagent({ name, description: 'd', parameters, agent: agent(options), prompt: () => name })
}

/** A chain of sub-agents in which each calls the next; the last one follows the script. */
function chain(names: readonly string[], script: readonly ScriptStep[]): Tool {
  const [name, ...rest] = names
  if (rest.length === 0) return helper(name!, { model: scripted(script) })
  const tools = [chain(rest, script)]
  return helper(name!, { model: scripted([calls(rest[0]!), says('done')]), tools })
}

interface Told {
  readonly path: string
  readonly agents: string
  readonly data: Readonly<Record<string, unknown>>
}

/** The starts and ends at every depth, each with the sub-agents and the agents that lead to it. */
function toldBy(events: readonly AgentStreamEvent[], path = '', agents = ''): Told[] {
  return events.flatMap(({ uap }) => {
    if (!uap) return []
    const via = `${agents}/${uap.agentId}:${uap.step}`
    if (uap.type === 'subagent_start' || uap.type === 'subagent_end') {
      const { type, data } = uap
      return [{ path: `${type}${path}/${data.subagentType}`, agents: via, data: { ...data } }]
    }
    if (uap.type !== 'subagent_event') return []
    return toldBy([uap.data.innerEvent], `${path}/${uap.data.subagentType}`, via)
  })
}

const names = ['outer', 'middle', 'inner']
const paths = ['/outer', '/outer/middle', '/outer/middle/inner']
const starts = paths.map((path) => `subagent_start${path}`)
const ends = paths.toReversed().map((path) => `subagent_end${path}`)

test.each<[string, Partial<AgentOptions>]>([
  ['of a built-in strategy', {}],
  ['of a strategy of one’s own', { execution: custom() }],
])('UAP-115 UAP-112 UAP-117 at every depth a start has one end: the run %s', async (_, options) => {
  for (const isAborted of [true, false]) {
    const tools = [chain(names, [isAborted ? [says('part'), waits(Infinity)] : says('ok')])]
    const parent = agent({ model: scripted([calls('outer'), says('done')]), tools, ...options })
    const stream = parent.stream('x', AgentState.initial())
    const events: AgentStreamEvent[] = []
    const read = (async () => {
      for await (const event of stream) {
        events.push(event)
        if (isAborted && JSON.stringify(event).includes('"part"')) stream.abort()
      }
    })()
    if (isAborted) await expect(read).rejects.toMatchObject({ code: 'CANCELLED' })
    else await read
    const told = toldBy(events)
    expect(told.map(({ path }) => path)).toEqual([...starts, ...ends])
    for (const depth of [0, 1, 2]) {
      const [start, end] = [told[depth]!, told[5 - depth]!]
      const { prompt, timestamp, ...identity } = start.data
      expect([prompt, timestamp]).toEqual([names[depth], expect.any(Number)])
      expect(end.data).toMatchObject({ ...identity, success: !isAborted })
      expect(end.data).toHaveProperty(isAborted ? 'error' : 'result')
      expect(end.data).not.toHaveProperty('prompt')
      expect(end.agents).toBe(start.agents)
    }
  }
})
