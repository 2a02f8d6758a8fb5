import { systemClock, uuidV4 } from '@skein/base'
import { expect, test } from 'vitest'
import type { StreamEvent } from '../contract/event.ts'
import { AssistantMessage, UserMessage } from '../contract/message.ts'
import type { BoundLLMModel, LLMRequest } from '../contract/provider.ts'
import { calls, cuts, emits, fails, reasons, says, scripted, stops, waits } from './index.ts'

const bind = (model: ReturnType<typeof scripted>): BoundLLMModel =>
  model.provider.handlers.llm!.bind(model)

function request(overrides: Partial<LLMRequest> = {}): LLMRequest {
  return {
    messages: [new UserMessage('hello')],
    params: {},
    tools: [],
    config: {},
    signal: new AbortController().signal,
    clock: systemClock,
    ids: uuidV4,
    ...overrides,
  }
}

async function drain(stream: AsyncIterable<readonly StreamEvent[]>): Promise<StreamEvent[]> {
  const events: StreamEvent[] = []
  for await (const batch of stream) events.push(...batch)
  return events
}

test('complete and stream give the same events, block by block', async () => {
  const steps = [[reasons('hm'), says('two words'), calls('add', { a: 1 })]]
  const streamed = await drain(bind(scripted(steps)).stream(request()))
  expect(await bind(scripted(steps)).complete(request())).toEqual(streamed)
  expect(streamed.map(({ type, index }) => `${type} ${index}`)).toEqual([
    'message_start 0',
    'content_block_start 0',
    'reasoning_delta 0',
    'content_block_stop 0',
    'content_block_start 1',
    'text_delta 1',
    'text_delta 1',
    'content_block_stop 1',
    'content_block_start 2',
    'tool_call_delta 2',
    'content_block_stop 2',
    'message_stop 0',
  ])
  expect(streamed.at(-1)).toMatchObject({ delta: { stopReason: 'tool_use' } })
})

test('text is cut by word or by length, and nothing is lost', async () => {
  const text = ' a  bc\n\ndé \n'
  for (const chunks of ['word', 1, 3, 100] as const) {
    const events = await bind(scripted([says(text)], { chunks })).complete(request())
    const pieces = events.flatMap((event) => (event.type === 'text_delta' ? event.delta.text : []))
    expect(pieces.join('')).toBe(text)
    expect(pieces.length).toBe(chunks === 'word' ? 4 : Math.ceil(text.length / chunks))
  }
})

test('requests are recorded, frozen, and do not grow with the caller’s list', async () => {
  const model = scripted([says('a'), says('b')])
  const messages = [new UserMessage('one')]
  await bind(model).complete(request({ messages }))
  messages.push(new UserMessage('two'))
  await bind(model).complete(request({ messages }))
  expect(model.requests.map((made) => made.messages.length)).toEqual([1, 2])
  expect(Object.isFrozen(model.requests[0]) && Object.isFrozen(model.requests[0]?.messages)).toBe(
    true,
  )
})

test('an exhausted script names the unexpected request', async () => {
  const model = scripted([says('only')])
  await bind(model).complete(request())
  await expect(
    bind(model).complete(request({ messages: [new UserMessage('and now?')] })),
  ).rejects.toThrow(
    'The script has 1 step(s), but request 2 came: its last message is user "and now?".',
  )
})

test('a function answers every request; call ids go on from the history', async () => {
  const model = scripted(({ messages }, index) => calls('f', { seen: messages.length, index }))
  const old = { toolCallId: 'call_1', toolName: 'f', arguments: {} }
  const events = await bind(model).complete(
    request({ messages: [new AssistantMessage('', [old]), new UserMessage('more')] }),
  )
  const start = events.find(({ type }) => type === 'content_block_start')
  expect(start?.delta).toEqual({ block: 'tool_call', toolCallId: 'call_2', toolName: 'f' })
})

test('failures come where the script has them', async () => {
  const model = scripted([[says('part'), fails({ code: 'RATE_LIMITED' })], fails('broken')])
  const seen: string[] = []
  const run = async (): Promise<void> => {
    for await (const batch of bind(model).stream(request()))
      seen.push(...batch.map(({ type }) => type))
  }
  await expect(run()).rejects.toMatchObject({ code: 'RATE_LIMITED' })
  expect(seen).toContain('text_delta')
  await expect(bind(model).complete(request())).rejects.toThrow('broken')
})

test('a wait ends at once when the request is aborted', async () => {
  const controller = new AbortController()
  const pending = bind(scripted([waits(Infinity)])).complete(request({ signal: controller.signal }))
  setTimeout(() => controller.abort(), 5)
  await expect(pending).rejects.toMatchObject({ code: 'CANCELLED' })
})

test('own events, own end, or no end', async () => {
  const whole: StreamEvent[] = [
    { type: 'message_start', index: 0, delta: {} },
    {
      type: 'message_stop',
      index: 0,
      delta: {
        stopReason: 'other',
        usage: {
          inputTokens: 0,
          outputTokens: 0,
          totalTokens: 0,
          cacheReadTokens: 0,
          cacheWriteTokens: 0,
        },
      },
    },
  ]
  const model = scripted([
    emits(...whole),
    [says('x'), stops('max_tokens', { usage: { inputTokens: 7 } })],
    [says('x'), cuts()],
  ])
  expect(await bind(model).complete(request())).toEqual(whole)
  const ended = await bind(model).complete(request())
  expect(ended.at(-1)?.delta).toMatchObject({ stopReason: 'max_tokens', usage: { inputTokens: 7 } })
  const open = await bind(model).complete(request())
  expect(open.at(-1)?.type).toBe('content_block_stop')
})
