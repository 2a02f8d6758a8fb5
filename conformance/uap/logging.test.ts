import { agent, AgentState, type Middleware } from '@skein/agents'
import { logging, type AgentLogDetails, type AgentLoggingOptions } from '@skein/agents/middleware'
import { recordEvents, scriptedAgent } from '@skein/agents/testing'
import { manualClock } from '@skein/base'
import { loop, plan } from '@skein/agents/execution'
import { defer, UserMessage } from '@skein/ai'
import { calls, fails, says, scripted, type ScriptStep, stops } from '@skein/ai/testing'
import { describe, expect, test, vi } from 'vitest'

type Line = [string, AgentLogDetails]

function logger(): { lines: Line[]; logger: (line: string, details: AgentLogDetails) => void } {
  const lines: Line[] = []
  return { lines, logger: (line, details) => void lines.push([line, details]) }
}

describe.each([{ streaming: false }, { streaming: true }])(
  'streaming: $streaming',
  ({ streaming }) => {
    async function run(middleware: Middleware, script = [says('the answer is marmalade')]) {
      const coder = scriptedAgent(script, { middleware: [middleware] })
      const result = streaming
        ? recordEvents(coder.stream('what is the secret?', AgentState.initial()))
        : coder.generate('what is the secret?', AgentState.initial())
      await result.catch(() => {})
      return coder
    }

    test('UAP-135 by default a run is logged with its timing and without a word of what was said', async () => {
      const { lines, logger: log } = logger()
      const clock = manualClock(1000)
      const slow: Middleware = { name: 'slow', before: () => clock.advance(250) }
      const coder = scriptedAgent([says('the answer is marmalade')], {
        middleware: [logging({ logger: log, clock }), slow],
      })
      await (streaming
        ? coder.stream('what is the secret?', AgentState.initial()).result
        : coder.generate('what is the secret?', AgentState.initial()))
      expect(lines.map(([line]) => line)).toEqual([
        `[agent ${coder.id}] run started`,
        `[agent ${coder.id}] run completed in 250 ms`,
      ])
      expect(lines[1]?.[1]).toMatchObject({
        level: 'info',
        agentId: coder.id,
        durationMs: 250,
        stopReason: 'complete',
        steps: 1,
        toolCalls: 0,
        totalTokens: expect.any(Number) as number,
      })
      expect(JSON.stringify(lines)).not.toMatch(/secret|marmalade/)
    })

    test('UAP-135 console.log is the default logger', async () => {
      const log = vi.spyOn(console, 'log').mockImplementation(() => {})
      try {
        await run(logging())
        expect(
          log.mock.calls.map(([line]) => String(line).replace(/.*\] | in \d+ ms/g, '')),
        ).toEqual(['run started', 'run completed'])
      } finally {
        log.mockRestore()
      }
    })

    test('UAP-135 includeMessages and includeTiming', async () => {
      const { lines, logger: log } = logger()
      await run(logging({ logger: log, includeMessages: true, includeTiming: false }))
      const [started, ended] = lines.map(([line]) => line)
      expect(started).toContain('what is the secret?')
      expect(started).not.toContain('marmalade')
      expect(ended).toContain('the answer is marmalade')
      expect(ended).not.toMatch(/ in \d+ ms/)
      expect(lines[1]?.[1]).not.toHaveProperty('durationMs')
      expect(lines[1]?.[1]['messages']).toMatchObject([{ type: 'user' }, { type: 'assistant' }])
    })

    const expected: Record<
      NonNullable<AgentLoggingOptions['level']>,
      { ok: number; failed: number }
    > = {
      debug: { ok: 3, failed: 3 },
      info: { ok: 2, failed: 2 },
      warn: { ok: 0, failed: 1 },
      error: { ok: 0, failed: 1 },
    }
    test.each(Object.entries(expected))('UAP-135 level %s', async (level, { ok, failed }) => {
      const { lines, logger: log } = logger()
      const middleware = logging({ logger: log, level: level as 'info' })
      await run(middleware)
      expect(lines.length).toBe(ok)
      lines.length = 0
      await run(middleware, [fails({ message: 'overloaded', code: 'RATE_LIMITED' })])
      expect(lines.length).toBe(failed)
      expect(lines.at(-1)).toEqual([
        expect.stringMatching(/run failed in \d+ ms: overloaded/),
        expect.objectContaining({ level: 'error', code: 'RATE_LIMITED' }),
      ])
    })
  },
)

test('UAP-135 an error that quotes a message or the output of a tool is logged without the quote', async () => {
  const failing = {
    name: 'get',
    description: 'Gets.',
    parameters: { type: 'object' },
    run: () => {
      throw new Error('no row for (ada@example.com)')
    },
  }
  const steps = [{ id: 'a', description: 'get it', tool: 'get', dependsOn: [] }]
  const failedPlan = [says(JSON.stringify({ steps })), calls('get'), says('sorry')]
  const refused = [fails('refused: is "a a b" about (x)? a.')]
  const tail = ': its tool "…" said: …'
  // Of each run: its script, its history and input, the error as it is logged, and a part of the whole error.
  const cases: [ScriptStep[], string[], string, string][] = [
    [
      failedPlan,
      ['get'],
      `Step "a" of the plan failed${tail}`,
      'said: no row for (ada@example.com)',
    ],
    [refused, ['a'], 'refused: is "… … b" about (x)? ….', '(x)? a.'],
    [refused, ['a', 'a a b'], 'refused: is "…" about (x)? ….', '(x)? a.'],
    [refused, ['(x)?', 'refuse'], 'refused: is "a a b" about … a.', '(x)? a.'],
    [refused, [' '], 'refused: is "a a b" about (x)? a.', '(x)? a.'],
  ]
  for (const [script, said, logged, whole] of cases)
    for (const includeMessages of [undefined, false, true]) {
      const { lines, logger: log } = logger()
      const options = {
        logger: log,
        level: 'error',
        includeMessages,
        includeTiming: false,
      } as const
      const execution = script === refused ? loop() : plan({ allowReplan: false })
      const own = { tools: [failing], execution, middleware: [logging(options)] }
      const coder = agent({ model: scripted(script), ...own })
      const [input, ...history] = said.toReversed()
      const state = AgentState.initial().withMessages(history.map((text) => new UserMessage(text)))
      await expect(coder.generate(input!, state)).rejects.toThrow(whole)
      const [[line, details]] = lines as [Line]
      if (includeMessages) expect(line).toContain(whole)
      else expect(line).toBe(`[agent ${coder.id}] run failed: ${logged}`)
      expect(JSON.stringify(details)).not.toContain('example')
    }
})

test('UAP-135 a run that waits for someone is a warning', async () => {
  const { lines, logger: log } = logger()
  const pay = {
    name: 'pay',
    description: 'Pays.',
    parameters: { type: 'object' },
    run: () => defer({ kind: 'approval', request: null }),
  }
  const model = scripted([calls('pay')])
  const coder = agent({
    model,
    tools: [pay],
    middleware: [logging({ logger: log, level: 'warn' })],
  })
  await coder.generate('pay', AgentState.initial())
  expect(lines.map(([line]) => line.replace(/.*\] | in \d+ ms/g, ''))).toEqual([
    'run waits for 1 answer(s)',
  ])
})

test('UAP-135 the details of a line: ids, counts, tokens and how the run ended', async () => {
  const { lines, logger: log } = logger()
  const clock = manualClock(5)
  const usage = (inputTokens: number, outputTokens: number) =>
    stops('tool_use', {
      usage: { inputTokens, outputTokens, totalTokens: inputTokens + outputTokens },
    })
  const look = {
    name: 'look',
    description: 'Looks.',
    parameters: { type: 'object' },
    run: () => void clock.advance(30),
  }
  const coder = agent({
    model: scripted([
      [calls('look'), calls('look'), usage(7, 2)],
      [calls('look'), usage(9, 3)],
    ]),
    tools: [look],
    execution: loop({ maxIterations: 2 }),
    middleware: [logging({ logger: log, level: 'debug', clock })],
    sessionId: 's',
  })
  const state = AgentState.initial()
    .withMessages([new UserMessage('a'), new UserMessage('b')])
    .withStep(4)
    .withMetadata('sessionId', 's')
  await coder.generate('go', state)
  const about = { agentId: coder.id, stateId: state.id, sessionId: 's' }
  const name = `[agent ${coder.id}]`
  expect(lines).toEqual([
    [`${name} run started`, { level: 'info', ...about }],
    [`${name} history has 2 messages`, { level: 'debug', ...about, messageCount: 2, step: 4 }],
    [
      `${name} run stopped (max_iterations) in 90 ms`,
      {
        level: 'info',
        ...about,
        durationMs: 90,
        stopReason: 'max_iterations',
        steps: 2,
        toolCalls: 3,
        inputTokens: 16,
        outputTokens: 5,
        totalTokens: 21,
      },
    ],
  ])
})

test('UAP-136 UAP-130 logging works among other middleware, in its place', async () => {
  const order: string[] = []
  const own = (name: string): Middleware => ({
    name,
    before: () => void order.push(`${name}.before`),
    after: () => void order.push(`${name}.after`),
  })
  const coder = scriptedAgent([says('hi')], {
    middleware: [
      own('first'),
      logging({ logger: (line) => void order.push(line.replace(/.*\] | in \d+ ms/g, '')) }),
      own('third'),
    ],
  })
  await coder.query('hello')
  expect(order).toEqual([
    'first.before',
    'run started',
    'third.before',
    'third.after',
    'run completed',
    'first.after',
  ])
})
