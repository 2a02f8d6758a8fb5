/** `delta.parsed` belongs to the message that is arriving, no matter what other middleware does with its events. */
import {
  llm,
  parsedObjectMiddleware,
  type Middleware,
  type ParsedStreamEvent,
  type StreamEvent,
} from '@skein/ai'
import { calls, says, scripted } from '@skein/ai/testing'
import { expect, test } from 'vitest'

const echo = { name: 'echo', description: '', parameters: {}, run: (args: object) => args }
const drop: Middleware = {
  name: 'drop',
  onStreamEvent: (event) => (event.type.startsWith('message_') ? null : event),
}

async function lastParsed(stream: AsyncIterable<StreamEvent>): Promise<unknown[]> {
  const values: unknown[] = []
  let last: unknown
  for await (const event of stream) {
    if ('parsed' in event.delta) last = (event as ParsedStreamEvent).delta.parsed
    if (event.type === 'content_block_stop') values.push(last)
  }
  return values
}

test.each([
  ['in front of it', [drop, parsedObjectMiddleware()]],
  ['behind it', [parsedObjectMiddleware(), drop]],
])(
  'UPP-108 each message starts anew when a middleware %s drops message_start',
  async (_, middleware) => {
    const steps = [calls('echo', { a: 1 }), calls('echo', { b: 2 }), says('{"c":3}')]
    const model = scripted(steps, { chunks: 1 })
    const stream = llm({ model, tools: [echo], structure: {}, middleware }).stream('x')
    expect(await lastParsed(stream)).toEqual([{ a: 1 }, { b: 2 }, { c: 3 }])
  },
)

test('UPP-108 an answer that was asked for again starts anew', async () => {
  const model = scripted([says('{"a":'), says('{"b":2}')], { chunks: 2 })
  const middleware = [drop, parsedObjectMiddleware()]
  const stream = llm({ model, structure: {}, repair: 1, middleware }).stream('x')
  expect(await lastParsed(stream)).toEqual([{}, { b: 2 }])
})

test('events that another middleware sends where no model was asked are parsed too', async () => {
  const delta = { argumentsJson: '{"a":1}', toolCallId: 'c', toolName: 'echo' }
  const sends: Middleware = {
    name: 'sends',
    onStreamEvent: (event) =>
      event.type === 'tool_execution_start'
        ? [event, { type: 'tool_call_delta', index: 0, delta }]
        : event,
  }
  const middleware = [sends, parsedObjectMiddleware()]
  const model = llm({ model: scripted([]), tools: [echo], middleware })
  const found: unknown[] = []
  const call = { toolCallId: 'c', toolName: 'echo', arguments: {} }
  for await (const batch of model.executeTools({ calls: [call] }))
    for (const { delta } of batch) if ('parsed' in delta) found.push(delta.parsed)
  expect(found).toEqual([{ a: 1 }])
})
