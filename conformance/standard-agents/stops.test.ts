import { describe, expect, test } from 'vitest'
import { z } from 'zod'
import { calls, says, type ScriptStep } from '@skein/ai/testing'
import { linesOf, pair, requestsOf, solo, tool } from './support/agents.ts'
import type { SideSetup } from './support/agents.ts'
import { latch } from './support/latch.ts'
import { simulate } from './support/simulate.ts'

const [finish, giveUp, hand, look] = ['finish', 'give_up', 'hand', 'look'].map((name) => tool(name))
const tools = [finish!, giveUp!, hand!, look!]

/** Everything at the same time, so that the order decides. */
const all = {
  tools,
  sessionStop: { name: 'finish', messageProperty: 'say' },
  sessionFail: { name: 'give_up', messageProperty: 'say' },
  stopTool: 'hand',
  stopToolResponseProperty: 'say',
} as const

const judged = (script: readonly ScriptStep[], a: Partial<SideSetup> = {}) =>
  pair('judged', {
    a: { ...all, ...a, script },
    b: { ...all, script: [calls('finish', { say: 'by B' })] },
  })

describe('the order of stop rules', () => {
  test('SA-32 the session’s end comes before the stop tool, wherever it stands in the step', async () => {
    for (const step of [
      [calls('hand', { say: 'h' }), calls('finish', { say: 'f' })],
      [calls('finish', { say: 'f' }), calls('hand', { say: 'h' })],
      [says('text'), calls('finish', { say: 'f' }), calls('hand', { say: 'h' })],
    ]) {
      const agent = judged([step])
      const it = await simulate({ agents: [agent] })
      const { id, outcome, reason, text } = await it.ask('go')
      expect({ outcome, reason, text }).toEqual({
        outcome: 'completed',
        reason: 'session_stop',
        text: 'f',
      })
      expect(requestsOf(agent, 'b')).toHaveLength(0)
      // All calls of the step ran before it was judged.
      expect(await it.events(id, 'tool_execution_end')).toHaveLength(2)
    }
  })

  test('SA-32 failure wins over success in one step', async () => {
    for (const names of [
      ['finish', 'give_up'],
      ['give_up', 'finish'],
    ]) {
      const it = await simulate({
        agents: [judged([names.map((name) => calls(name, { say: name }))])],
      })
      const { outcome, reason, text } = await it.ask('go')
      expect({ outcome, reason, text }).toEqual({
        outcome: 'failed',
        reason: 'session_fail',
        text: 'give_up',
      })
    }
  })

  test.each([
    ['finish', { outcome: 'completed', reason: 'session_stop', text: 'say' }],
    ['give_up', { outcome: 'failed', reason: 'session_fail', text: 'say' }],
    ['hand', { outcome: 'completed', reason: 'stop_tool', text: 'say' }],
  ])('SA-32 SA-33 a call that fails next to %s changes nothing', async (name, expected) => {
    const broken = tool('broken', () => {
      throw new Error('no')
    })
    const end = calls(name, { say: 'say' })
    for (const step of [
      [calls('broken'), end],
      [end, calls('broken')],
      [says('text'), calls('unknown'), end, calls('broken'), calls('look')],
    ]) {
      const agent = solo('alone', { ...all, tools: [...tools, broken], script: [step] })
      const it = await simulate({ agents: [agent] })
      const { outcome, reason, text } = await it.ask('go')
      expect({ outcome, reason, text }).toEqual(expected)
    }
  })

  test('SA-33 what a tool ends need not have the shape that the prompt asks of answers', async () => {
    const output = z.object({ score: z.number() })
    for (const [name, reason] of [
      ['finish', 'session_stop'],
      ['give_up', 'session_fail'],
      ['hand', 'stop_tool'],
    ] as const) {
      const prompt = { output }
      const alone = solo('alone', { ...all, prompt, script: [calls(name, { say: 'words' })] })
      const it = await simulate({ agents: [alone] })
      expect(await it.ask('go')).toMatchObject({ reason, text: 'words' })
      // In a pair, the turn is handed over.
      const both = judged([calls(name, { say: 'words' })], { prompt })
      const two = await simulate({ agents: [both] })
      const { id } = await two.ask('go')
      expect((await two.events(id, 'turn_end'))[0]).toMatchObject({ reason })
      expect(requestsOf(both, 'a')).toHaveLength(1)
    }
  })

  test('SA-32 it comes before a stop that waits for the step, and before the stop tool that asked for it', async () => {
    const started = latch()
    const go = latch()
    const slow = tool('finish', async () => {
      started.open()
      await go.reached
    })
    const late = solo('late', {
      ...all,
      tools: [slow, giveUp!, hand!],
      script: [calls('finish', { say: 'f' })],
    })
    const it = await simulate({ agents: [late] })
    const id = await it.create()
    const run = it.run(id, 'go')
    await started.reached
    await it.threads.stop(id, { afterStep: true })
    go.open()
    expect(await run).toMatchObject({ outcome: 'completed', reason: 'session_stop', text: 'f' })

    const asks = tool('hand', (state) => void state.stopSession({ result: 'enough' }))
    const own = solo('own', {
      ...all,
      tools: [finish!, giveUp!, asks],
      script: [calls('hand', { say: 'h' })],
    })
    const two = await simulate({ agents: [own] })
    expect(await two.ask('go')).toMatchObject({ reason: 'stop_session', text: 'enough' })
  })

  test.each([
    ['finish', { outcome: 'completed', reason: 'session_stop', text: 'say' }],
    ['give_up', { outcome: 'failed', reason: 'session_fail', text: 'say' }],
    ['hand', { outcome: 'completed', reason: 'stop_tool', text: 'say' }],
  ])(
    'SA-32 SA-33 a handoff comes after %s, wherever it stands in the step',
    async (name, expected) => {
      const exposed = { exposeAsTool: true, toolDescription: 'Another desk.' }
      const desk = solo('desk', { script: () => says('never') }, exposed)
      for (const step of [
        [calls('desk'), calls(name, { say: 'say' })],
        [calls(name, { say: 'say' }), calls('desk')],
      ]) {
        const front = solo('front', { ...all, tools: [...tools, desk], script: [step] })
        const it = await simulate({ agents: [front] })
        const { outcome, reason, text, thread } = await it.ask('go')
        expect({ outcome, reason, text }).toEqual(expected)
        expect(thread.agent).toBe('front')
        expect(requestsOf(desk)).toHaveLength(0)
      }
    },
  )

  test('SA-33 then the stop tool: with text next to it, its own property is what is said', async () => {
    const agent = judged([[says('and this'), calls('hand', { say: 'handed' })]])
    const it = await simulate({ agents: [agent] })
    const { id } = await it.ask('go')
    expect(linesOf(requestsOf(agent, 'b')[0]).at(-1)).toBe('user: handed')
    const ends = await it.events(id, 'turn_end')
    expect(ends.map(({ reason }) => reason)).toEqual(['stop_tool', 'session_stop'])
  })

  test.each<[string, ScriptStep[], Partial<SideSetup>, string[]]>([
    ['text alone', [says('t')], {}, ['response', 'session_stop']],
    ['a call, then text', [calls('look'), says('t')], {}, ['response', 'session_stop']],
    [
      'text and a call, then the stop tool',
      [[says('t'), calls('look')], calls('hand')],
      {},
      ['stop_tool', 'session_stop'],
    ],
    [
      'text that does not stop, then the stop tool',
      [says('t'), calls('hand')],
      { stopOnResponse: false },
      ['stop_tool', 'session_stop'],
    ],
    [
      'the stop tool among other calls',
      [[calls('look'), calls('hand'), calls('look')]],
      {},
      ['stop_tool', 'session_stop'],
    ],
    [
      'the stop tool with text and among other calls, where text does not stop',
      [[says('t'), calls('hand'), calls('look')]],
      { stopOnResponse: false },
      ['stop_tool', 'session_stop'],
    ],
  ])('SA-33 %s', async (_, script, side, expected) => {
    const agent = judged(script, side)
    const it = await simulate({ agents: [agent] })
    const { id, outcome } = await it.ask('go')
    expect(outcome).toBe('completed')
    expect(requestsOf(agent, 'a')).toHaveLength(script.length)
    const ends = await it.events(id, 'turn_end')
    expect(ends.map(({ reason }) => reason)).toEqual(expected)
  })

  test('SA-34 limits come last: what ends the session on the very last step counts', async () => {
    const last = judged([calls('look'), calls('finish', { say: 'just in time' })], { maxSteps: 2 })
    const it = await simulate({ agents: [last] })
    expect(await it.ask('go')).toMatchObject({ outcome: 'completed', text: 'just in time' })

    const text = solo('text', { script: [calls('look'), says('Phew.')], tools, maxSteps: 2 })
    const two = await simulate({ agents: [text] })
    expect(await two.ask('go')).toMatchObject({ outcome: 'completed', text: 'Phew.' })

    const late = judged([calls('look'), calls('look'), calls('finish')], { maxSteps: 2 })
    const three = await simulate({ agents: [late] })
    expect(await three.ask('go')).toMatchObject({ outcome: 'failed', reason: 'max_side_steps' })
    expect(requestsOf(late, 'a')).toHaveLength(2)
  })

  test('SA-34 a terminal call in the last turn allowed counts as well', async () => {
    const sides = {
      a: { ...all, script: () => says('draft') },
      b: { ...all, script: [says('no'), calls('finish', { say: 'fine' })] },
    }
    const it = await simulate({ agents: [pair('last', sides, { maxSessionTurns: 4 })] })
    expect(await it.ask('go')).toMatchObject({ outcome: 'completed', text: 'fine' })
    const shorter = await simulate({
      agents: [
        pair(
          'last',
          { ...sides, b: { ...sides.b, script: [says('no'), calls('finish')] } },
          { maxSessionTurns: 3 },
        ),
      ],
    })
    expect(await shorter.ask('go')).toMatchObject({
      outcome: 'failed',
      reason: 'max_session_turns',
    })
  })
})

describe('other limits', () => {
  test('a side without maxSteps has the runtime’s limit', async () => {
    const agent = solo('long', { script: () => calls('look'), tools })
    const it = await simulate({ agents: [agent], limits: { maxSteps: 7 } })
    expect(await it.ask('go')).toMatchObject({ outcome: 'failed', reason: 'max_side_steps' })
    expect(requestsOf(agent)).toHaveLength(7)
  })

  test('the same tool error again and again ends the session; other outcomes begin the count anew', async () => {
    const broken = tool('broken', (_, { n }) => {
      if (n !== 'fine') throw new Error(`it broke ${String(n)}`)
    })
    const agent = solo('stubborn', {
      script: (_, index) => calls('broken', { n: [1, 1, 2, 2, 'fine', 1, 1, 1][index] ?? 0 }),
      tools: [broken],
    })
    const it = await simulate({ agents: [agent], limits: { sameErrors: 3 } })
    const { outcome, reason, text } = await it.ask('go')
    expect({ outcome, reason }).toEqual({ outcome: 'failed', reason: 'repeated_tool_error' })
    expect(text).toContain('it broke 1')
    expect(requestsOf(agent)).toHaveLength(8)
  })

  test('an empty answer is refused once and fails the session the second time in a row', async () => {
    const once = solo('once', { script: [says(' '), says('Sorry. Here.')] })
    const it = await simulate({ agents: [once] })
    expect(await it.ask('go')).toMatchObject({ outcome: 'completed', text: 'Sorry. Here.' })
    expect(linesOf(requestsOf(once)[1]).at(-1)).toBe(
      'user: The last reply was empty. Answer, or call a tool.',
    )
    const never = solo('never', { script: () => says('') })
    const two = await simulate({ agents: [never] })
    expect(await two.ask('go')).toMatchObject({ outcome: 'failed', reason: 'empty_response' })
    expect(requestsOf(never)).toHaveLength(2)
  })

  test('a call that is refused again and again ends the session as well', async () => {
    // The tool that should undo it does not exist.
    const rollback = () => ({ type: 'tool_call', target: 'nobody', payload: {} })
    const pay = tool('pay', undefined, { risk: 'write_high_risk', rollback })
    const agent = solo('pushy', { script: () => calls('pay'), tools: [pay] })
    const it = await simulate({ agents: [agent], limits: { sameErrors: 3 } })
    expect(await it.ask('go')).toMatchObject({ outcome: 'failed', reason: 'repeated_tool_error' })
    expect(requestsOf(agent)).toHaveLength(3)
  })

  test('with toolChoice required, words alone end no turn; twice in a row they fail the session', async () => {
    const prompt = { toolChoice: 'required' } as const
    const side = { tools, prompt, stopTool: 'hand' }
    const once = solo('once', { ...side, script: [says('Well.'), calls('hand')] })
    const it = await simulate({ agents: [once] })
    expect(await it.ask('go')).toMatchObject({ outcome: 'completed', reason: 'stop_tool' })
    expect(linesOf(requestsOf(once)[1]).at(-1)).toBe('user: Answer by calling a tool.')
    const never = solo('never', { ...side, script: () => says('Well.') })
    const two = await simulate({ agents: [never] })
    expect(await two.ask('go')).toMatchObject({ outcome: 'failed', reason: 'tool_required' })
    expect(requestsOf(never)).toHaveLength(2)
  })

  test('with toolChoice none, no tool is offered', async () => {
    const agent = solo('mute', { script: [says('x')], tools, prompt: { toolChoice: 'none' } })
    const it = await simulate({ agents: [agent] })
    expect(await it.ask('go')).toMatchObject({ outcome: 'completed', text: 'x' })
    expect(requestsOf(agent)[0]!.tools).toEqual([])
  })

  test('a call of a tool that does not exist goes to the model', async () => {
    const agent = solo('dreams', { script: [calls('no_such'), says('Ok.')], tools })
    const it = await simulate({ agents: [agent] })
    expect((await it.ask('go')).outcome).toBe('completed')
    expect(linesOf(requestsOf(agent)[1]).at(-1)).toMatch(/^tool_result: no_such ! .*no_such/)
  })
})

test.each(['a', 'b'] as const)(
  'SA-87 when the stop tool of side %s ends its turn, the other side continues',
  async (name) => {
    const pass = tool('pass')
    const finish = tool('finish')
    const own = {
      script: [calls('pass', { text: 'yours' }), calls('finish')],
      tools: [pass, finish],
      stopTool: 'pass',
      stopToolResponseProperty: 'text',
      sessionStop: 'finish',
    }
    const other = { script: () => says('mine') }
    const agent = pair('both', name === 'a' ? { a: own, b: other } : { a: other, b: own })
    const it = await simulate({ agents: [agent] })
    const { id, reason } = await it.ask('go')
    expect(reason).toBe('session_stop')
    expect((await it.events(id, 'turn_start')).map(({ side }) => side)).toEqual(
      name === 'a' ? ['a', 'b', 'a'] : ['a', 'b', 'a', 'b'],
    )
    const heard = requestsOf(agent, name === 'a' ? 'b' : 'a').at(-1)
    expect(linesOf(heard).at(-1)).toBe('user: yours')
  },
)

test.each(['a', 'b'] as const)(
  'SA-65 a tool of side %s can end the session by itself',
  async (name) => {
    const quit = tool('quit', (state) => state.stopSession({ result: 'enough' }))
    const own = { script: [calls('quit'), says('never')], tools: [quit] }
    const other = { script: [says('mine')] }
    const agent = pair('both', name === 'a' ? { a: own, b: other } : { a: other, b: own })
    const it = await simulate({ agents: [agent] })
    expect(await it.ask('go')).toMatchObject({ reason: 'stop_session', text: 'enough' })
  },
)
