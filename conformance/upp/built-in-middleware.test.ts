/** The middleware that the package brings: what it adds to events and writes to logs. */
import { deepFreeze } from '@skein/base'
import {
  llm,
  loggingMiddleware,
  parsedObjectMiddleware,
  UserMessage,
  type Middleware,
  type ParsedStreamEvent,
  type StreamEvent,
} from '@skein/ai'
import { calls, emits, says, scripted } from '@skein/ai/testing'
import { expect, test } from 'vitest'

async function collect(stream: AsyncIterable<StreamEvent>): Promise<StreamEvent[]> {
  const events: StreamEvent[] = []
  for await (const event of stream) events.push(event)
  return events
}

const echo = { name: 'echo', description: '', parameters: {}, run: (args: object) => args }

test.each([[[]], [['message_start']], [['message_start', 'content_block_start', 'message_stop']]])(
  'UPP-108 UPP-107 each message of a loop starts anew, also without the events %j',
  async (dropped: readonly string[]) => {
    const drop: Middleware = {
      name: 'drop',
      onStreamEvent: (event) => (dropped.includes(event.type) ? null : event),
    }
    const model = scripted([calls('echo', { a: 1 }), calls('echo', { b: 2 }), says('{"c":3}')])
    const middleware = [drop, parsedObjectMiddleware()]
    const state = new Map<string, unknown>()
    const talker = llm({ model, tools: [echo], structure: { type: 'object' }, middleware })
    const last: unknown[] = []
    for (let message = 0; message < 3; message++) {
      // One inference at a time with a shared state, as an agent does it.
      const steps = talker.infer([new UserMessage('x')], { state })
      let parsed: unknown
      for (let step = await steps.next(); !step.done; step = await steps.next())
        for (const { delta } of step.value as ParsedStreamEvent[])
          if (delta.parsed !== undefined) parsed = delta.parsed
      last.push(parsed)
    }
    const loop = scripted([calls('echo', { a: 1 }), calls('echo', { b: 2 }), says('{"c":3}')])
    for (const event of await collect(talker.with({ model: loop }).stream('x'))) {
      const { parsed } = (event as ParsedStreamEvent).delta
      if (Object.keys(parsed ?? {}).length > 0) last.push(parsed)
    }
    expect(last).toEqual([{ a: 1 }, { b: 2 }, { c: 3 }, { a: 1 }, { b: 2 }, { c: 3 }])
  },
)

test('UPP-111 UPP-108 the events that others hold stay as they are; only the copy has `parsed`', async () => {
  const own: StreamEvent[] = deepFreeze([
    { type: 'tool_call_delta', index: 0, delta: { toolCallId: 'c', toolName: 'echo', argumentsJson: '{"a":1}' } }, // prettier-ignore
  ])
  const before: StreamEvent[] = []
  const watch: Middleware = {
    name: 'watch',
    onStreamEvent: (event) => {
      before.push(event)
      return event
    },
  }
  const model = scripted([emits(...own), says('ok')])
  const middleware = [watch, parsedObjectMiddleware()]
  const events = await collect(llm({ model, tools: [echo], middleware }).stream('x'))
  for (const event of [...own, ...before]) expect(event.delta).not.toHaveProperty('parsed')
  const shown = events.filter(({ type }) => type === 'tool_call_delta') as ParsedStreamEvent[]
  expect(shown.map(({ delta }) => ({ ...delta }))).toEqual(
    own.map(({ delta }) => ({ ...delta, parsed: { a: 1 } })),
  )
})

test('UPP-109 UPP-158 a key is in no detail of a line, whoever repeats it', async () => {
  const apiKey = 'key-0123456789-canary'
  const lines: string[] = []
  const logging = loggingMiddleware({
    level: 'debug',
    logger: (...line) => void lines.push(JSON.stringify(line)),
  })
  const named = { ...echo, name: `echo_${apiKey}` }
  const model = scripted([calls(named.name), says('ok')])
  const options = { model, tools: [named], middleware: [logging], config: { apiKey } }
  await llm({ ...options, params: { [apiKey]: 1 } }).generate('x')
  expect(lines.length).toBeGreaterThan(5)
  expect(lines.join('\n')).toContain('[redacted]')
  expect(lines.join('\n')).not.toContain('canary')
})
