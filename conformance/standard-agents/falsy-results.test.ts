// Results that are empty, zero, false or null arrive as they are, no matter who gives them.
import { describe, expect, test } from 'vitest'
import { calls, says } from '@skein/ai/testing'
import { defineTool } from '@skein/runtime'
import { linesOf, pair, requestsOf, solo, tool } from './support/agents.ts'
import { simulate } from './support/simulate.ts'

const end = tool('end', () => 'the tool says this')

describe.each([
  ['blocking', {}],
  ['non-blocking', { blocking: false }],
  ['resumable', { resumable: {} }],
  ['resumable and non-blocking', { resumable: {}, blocking: false }],
] as const)('a %s child', (_, config) => {
  test.each([
    ['', ''],
    [0, '0'],
    [false, 'false'],
    [null, ''],
    [undefined, ''],
    ['  ', '  '],
  ])('SA-29 SA-31 that ends with %j tells its parent just that', async (value, text) => {
    for (const kind of ['sessionStop', 'sessionFail'] as const) {
      const helper = pair('helper', {
        a: {
          script: [calls('end', value === undefined ? {} : { say: value })],
          tools: [end],
          [kind]: { name: end, messageProperty: 'say' },
        },
        b: { script: [] },
      })
      const call =
        'resumable' in config
          ? calls('subagent_create', { agent: 'helper', name: 'Ada', message: 'go' })
          : calls('helper', { message: 'go' })
      const top = solo('boss', {
        script: (_request, index) => (index === 0 ? call : says('So.')),
        tools: [{ name: helper, ...config }],
      })
      const it = await simulate({ agents: [top] })
      const { id } = await it.ask('hi')
      await it.idle()
      const [made] = await it.events(id, 'subagent_created')
      const [ended] = await it.events(made!.reference, 'session_end')
      expect(ended).toMatchObject({ message: text })
      const verb = kind === 'sessionStop' ? 'returned the following result' : 'reported a failure'
      const opening = `Subagent (reference: ${made!.reference}) has ${verb}:\n\n`
      const body = 'resumable' in config ? opening + text : text
      const name = 'resumable' in config ? 'subagent_create' : 'helper'
      const lines = linesOf(requestsOf(top).at(-1))
      if ('blocking' in config) expect(lines).toContain(`user: ${opening}${text}`)
      else if (kind === 'sessionStop')
        expect(lines).toContain(`tool_result: ${name} = ${JSON.stringify(body)}`)
      else expect(lines).toContain(`tool_result: ${name} ! ${body}`)
    }
  })
})

test.each(['', 0, false, null, [], {}, '  '])(
  'a person, a client or a tool that answers %j has answered just that',
  async (value) => {
    const ask = defineTool({ name: 'ask', description: 'Asks.', risk: 'read_only' })
    const agent = solo('asks', {
      script: [[calls('ask'), calls('own')], says('So.')],
      tools: [ask, tool('own', () => value)],
    })
    const it = await simulate({ agents: [agent] })
    const { id, waiting } = await it.ask('hi')
    await it.runtime.inbox.answer(waiting[0]!, { type: 'result', value })
    await it.idle()
    const results = `ask = ${JSON.stringify(value)}, own = ${JSON.stringify(value)}`
    expect(linesOf(requestsOf(agent)[1]).at(-1)).toBe(`tool_result: ${results}`)
    const ends = await it.events(id, 'tool_execution_end')
    expect(ends.map(({ result }) => result)).toEqual([value, value])
  },
)
