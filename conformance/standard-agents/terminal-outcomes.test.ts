// A bound tool counts only if its call succeeded, no matter who decided that; the stop tool counts when it is called.
import { describe, expect, test } from 'vitest'
import { z } from 'zod'
import { calls, says } from '@skein/ai/testing'
import { defineTool, type ToolDefinition, type WaitingItem } from '@skein/runtime'
import { linesOf, requestsOf, solo } from './support/agents.ts'
import { simulate, type Simulation } from './support/simulate.ts'

const said = { name: 'bound', description: 'Is bound.' }
const args = z.looseObject({ n: z.number() })
const risky = { risk: 'write_high_risk', rollback: 'impossible' } as const

interface Way {
  readonly tool: ToolDefinition
  readonly given?: object
  /** Answers the question that the call asks. */
  readonly answer?: (it: Simulation, item: WaitingItem) => Promise<unknown>
}

const runs = defineTool({ ...said, args, risk: 'read_only', execute: () => 'ok' })
const waits = defineTool({ ...said, args, ...risky, execute: () => 'ok' })
const asks = defineTool({ ...said, args, risk: 'read_only' })

const successes: Readonly<Record<string, Way>> = {
  'that runs': { tool: runs },
  'that is approved': {
    tool: waits,
    answer: (it, item) => it.runtime.inbox.approve({ ...item, by: 'ann' }),
  },
  'that the client answers': {
    tool: asks,
    answer: (it, item) => it.runtime.inbox.answer(item, { type: 'result', value: 'ok' }),
  },
}

const failures: Readonly<Record<string, Way>> = {
  'that throws': {
    tool: defineTool({
      ...said,
      args,
      risk: 'read_only',
      execute() {
        throw new Error('no')
      },
    }),
  },
  'with wrong arguments': { tool: runs, given: { n: 'seven' } },
  'that is denied': {
    tool: waits,
    answer: (it, item) => it.runtime.inbox.deny({ ...item, by: 'ann', reason: 'no' }),
  },
  'that no one approves': { tool: waits, answer: (it) => it.advance(60_000) },
  'for which the client reports an error': {
    tool: asks,
    answer: (it, item) => it.runtime.inbox.answer(item, { type: 'error', message: 'no' }),
  },
  'that the client never answers': { tool: asks, answer: (it) => it.advance(60_000) },
}

/** Runs an agent whose model calls the bound tool and then says `Well.` */
async function bound(way: Way, side: object) {
  const agent = solo('alone', {
    ...side,
    script: [calls('bound', { text: 'told', n: 7, ...way.given }), says('Well.')],
    tools: [way.tool],
  })
  const it = await simulate({ agents: [agent], limits: { interruptTtlMs: 60_000 } })
  const { id, waiting } = await it.ask('go')
  if (way.answer) await way.answer(it, waiting[0]!)
  await it.idle()
  const { outcome, reason, text } = await it.threads.settled(id)
  const statuses = (await it.events(id, 'status_changed')).flatMap((one) => one.text ?? [])
  const lines = linesOf(requestsOf(agent)[1])
  return { outcome, reason, text, statuses, lines }
}

const binding = { name: 'bound', messageProperty: 'text' }
const well = { outcome: 'completed', reason: 'response', text: 'Well.' }

describe.each(Object.keys(successes))('a call %s', (name) => {
  const way = successes[name]!

  test.each([
    ['sessionStop', { outcome: 'completed', reason: 'session_stop', text: 'told', statuses: [] }],
    ['sessionFail', { outcome: 'failed', reason: 'session_fail', text: 'told', statuses: [] }],
    ['sessionStatus', { ...well, statuses: ['told'] }],
  ])('SA-25 SA-26 SA-27 counts for %s', async (kind, expected) => {
    expect(await bound(way, { [kind]: binding })).toMatchObject(expected)
  })
})

describe.each(Object.keys(failures))('a call %s', (name) => {
  const way = failures[name]!

  test.each(['sessionStop', 'sessionFail', 'sessionStatus'])(
    'SA-25 SA-26 SA-27 does not count for %s, and the model learns why',
    async (kind) => {
      const { lines, ...result } = await bound(way, { [kind]: binding })
      expect(result).toEqual({ ...well, statuses: [] })
      expect(lines.at(-1)).toMatch(/^tool_result: bound ! /)
    },
  )
})

describe.each(Object.entries({ ...successes, ...failures }))('a call %s', (_, way) => {
  test('SA-22 ends the turn if it is the stop tool', async () => {
    const side = { stopTool: 'bound', stopToolResponseProperty: 'text' }
    expect(await bound(way, side)).toMatchObject({
      outcome: 'completed',
      reason: 'stop_tool',
      text: 'told',
      lines: [],
    })
  })
})
