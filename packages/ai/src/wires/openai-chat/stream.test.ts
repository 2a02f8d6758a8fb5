import { describe, expect, test } from 'vitest'
import type { JsonObject } from '@skein/base'
import {
  checkGrammar,
  contextOf,
  decodeStream,
  fold,
  frame,
  requestOf,
} from '../../../test/wires/wire-cases.ts'
import { chatDialect } from './dialect.ts'
import { openaiChat } from './wire.ts'

// Chunks are written from the vendors' documentation and SDK types; none is recorded traffic.
const target = { provider: 'acme', modelId: 'm', dialect: chatDialect }
const context = contextOf(target)

function delta(delta: JsonObject, rest: JsonObject = {}): JsonObject {
  return { id: 'c1', model: 'm-1', choices: [{ index: 0, delta, finish_reason: null }], ...rest }
}
function finish(reason: string, rest: JsonObject = {}): JsonObject {
  return {
    id: 'c1',
    model: 'm-1',
    choices: [{ index: 0, delta: {}, finish_reason: reason }],
    ...rest,
  }
}
const usage = { prompt_tokens: 3, completion_tokens: 2, total_tokens: 5 }
const stream = (frames: (JsonObject | string)[], request = requestOf()) =>
  decodeStream(openaiChat, frames, contextOf(target, request, openaiChat))

describe('text', () => {
  test('deltas, usage behind the finish reason, and padding that says nothing', () => {
    const events = stream([
      delta({ role: 'assistant', content: '' }, { obfuscation: 'xyz' }),
      delta({ content: 'Hel' }),
      delta({ content: 'lo' }),
      finish('stop'),
      { id: 'c1', model: 'm-1', choices: [], usage },
      '[DONE]',
    ])
    checkGrammar(events)
    expect(events.map((event) => event.type)).toEqual([
      'message_start',
      'content_block_start',
      'text_delta',
      'text_delta',
      'content_block_stop',
      'message_stop',
    ])
    expect(events[0]?.delta).toEqual({ provider: 'acme', model: 'm-1', id: 'c1' })
    const { content, stop, metadata } = fold(events)
    expect(content).toEqual([{ type: 'text', text: 'Hello' }])
    expect(stop).toMatchObject({ stopReason: 'end_turn', rawStopReason: 'stop' })
    expect(stop?.usage).toMatchObject({ inputTokens: 3, outputTokens: 2, totalTokens: 5 })
    expect(metadata).toEqual({ acme: { api: 'openai-chat', id: 'c1', model: 'm-1' } })
  })

  test('usage that comes with an empty choice (OpenRouter) is counted', () => {
    const events = stream([
      delta({ content: 'x' }),
      finish('stop'),
      delta({ content: '' }, { usage: { ...usage, cost: 0.25 } }),
      '[DONE]',
    ])
    expect(fold(events).stop?.usage).toMatchObject({ totalTokens: 5, costUsd: 0.25 })
  })

  test('no usage at all counts as zero', () => {
    const events = stream([delta({ content: 'x' }), finish('length')])
    expect(fold(events).stop).toMatchObject({
      stopReason: 'max_tokens',
      usage: { inputTokens: 0, totalTokens: 0 },
    })
  })

  test('reasoning tokens told apart from completion tokens (xAI) are part of the output', () => {
    const apart = {
      prompt_tokens: 10,
      completion_tokens: 5,
      total_tokens: 35,
      completion_tokens_details: { reasoning_tokens: 20 },
    }
    const events = stream([delta({ content: 'x' }), finish('stop', { usage: apart }), '[DONE]'])
    expect(fold(events).stop?.usage).toMatchObject({ outputTokens: 25, reasoningTokens: 20 })
  })

  test('a refusal is text, and the reason to stop', () => {
    const events = stream([delta({ refusal: 'I ' }), delta({ refusal: 'cannot.' }), finish('stop')])
    const { content, stop } = fold(events)
    expect(content).toMatchObject([{ type: 'text', text: 'I cannot.' }])
    expect(stop?.stopReason).toBe('refusal')
  })

  test('logprobs, annotations and unknown fields are kept', () => {
    const choice = { index: 0, delta: { content: 'a' }, logprobs: { content: [{ token: 'a' }] } }
    const events = stream([
      { id: 'c', model: 'm', choices: [choice] },
      { id: 'c', model: 'm', choices: [{ ...choice, logprobs: { content: [{ token: 'b' }] } }] },
      delta({ annotations: [{ type: 'url_citation' }], x_new: { a: 1 } }),
      finish('stop', { service_tier: 'flex' }),
    ])
    expect(fold(events).metadata?.['acme']).toMatchObject({
      logprobs: { content: [{ token: 'a' }, { token: 'b' }] },
      annotations: [{ type: 'url_citation' }],
      x_new: { a: 1 },
      service_tier: 'flex',
    })
  })

  test('content_filter and Azure prompt chunks without choices', () => {
    const events = stream([
      { id: '', model: '', choices: [], prompt_filter_results: [{ prompt_index: 0 }] },
      delta({ content: 'x' }),
      finish('content_filter'),
      '[DONE]',
    ])
    checkGrammar(events)
    const { stop, metadata } = fold(events)
    expect(stop?.stopReason).toBe('content_filter')
    expect(metadata?.['acme']?.['prompt_filter_results']).toEqual([{ prompt_index: 0 }])
  })
})

describe('reasoning', () => {
  test.each(['reasoning', 'reasoning_content'])('in the field %s', (field) => {
    const events = stream([
      delta({ [field]: 'Hm' }),
      delta({ [field]: '.' }),
      delta({ content: 'Yes' }),
      finish('stop'),
    ])
    checkGrammar(events)
    expect(fold(events).content).toEqual([
      { type: 'reasoning', text: 'Hm.' },
      { type: 'text', text: 'Yes' },
    ])
  })

  test('details are joined, with a signature that comes late', () => {
    const detail = { type: 'reasoning.text', index: 0, format: 'x' }
    const events = stream([
      delta({ reasoning: 'A', reasoning_details: [{ ...detail, text: 'A' }] }),
      delta({ reasoning: 'B', reasoning_details: [{ ...detail, text: 'B' }] }),
      delta({ content: 'ok' }),
      delta({ reasoning_details: [{ ...detail, text: null, signature: 'sig' }] }),
      delta({ reasoning_details: [{ type: 'reasoning.encrypted', index: 1, data: 'zz' }] }),
      finish('stop'),
    ])
    const { content, metadata } = fold(events)
    expect(content[0]).toEqual({ type: 'reasoning', text: 'AB' })
    expect(metadata?.['acme']?.['reasoning_details']).toEqual([
      { ...detail, text: 'AB', signature: 'sig' },
      { type: 'reasoning.encrypted', index: 1, data: 'zz' },
    ])
  })

  test('details alone still tell the thoughts', () => {
    const events = stream([
      delta({ reasoning_details: [{ type: 'reasoning.summary', summary: 'Sum' }] }),
      finish('stop'),
    ])
    expect(fold(events).content).toEqual([{ type: 'reasoning', text: 'Sum' }])
  })

  test("Mistral's thinking parts", () => {
    const thinking = { type: 'thinking', thinking: [{ type: 'text', text: 'Hm' }] }
    const events = stream([
      delta({ content: [thinking] }),
      delta({ content: [{ type: 'text', text: 'Yes' }] }),
      finish('stop'),
    ])
    expect(fold(events).content.map((block) => block.type)).toEqual(['reasoning', 'text'])
  })
})

describe('tool calls', () => {
  const call = (index: number | undefined, id: string | undefined, name?: string, args = '') => ({
    ...(index !== undefined && { index }),
    ...(id !== undefined && { id }),
    function: { ...(name && { name }), arguments: args },
  })
  const calls = (...list: JsonObject[]) => delta({ tool_calls: list })

  test('interleaved by index', () => {
    const events = stream([
      calls(call(0, 'a', 'f', '{"x":')),
      calls(call(1, 'b', 'g', '{"y":')),
      calls(call(0, undefined, undefined, '1}')),
      calls(call(1, undefined, undefined, '2}')),
      finish('tool_calls'),
      '[DONE]',
    ])
    checkGrammar(events)
    const { toolCalls, stop } = fold(events)
    expect(toolCalls).toEqual([
      { toolCallId: 'a', toolName: 'f', arguments: { x: 1 } },
      { toolCallId: 'b', toolName: 'g', arguments: { y: 2 } },
    ])
    expect(stop?.stopReason).toBe('tool_use')
  })

  test.each([
    ['without index', undefined],
    ['all numbered 0', 0],
  ])('several calls %s do not merge', (_, index) => {
    const events = stream([
      calls(call(index, 'a', 'f', '{"x":')),
      calls(call(index, undefined, undefined, '1}')),
      calls(call(index, 'b', 'f', '{"x":2}'), call(index, 'c', 'f', '{"x":3}')),
      finish('tool_calls'),
    ])
    expect(fold(events).toolCalls?.map((each) => each.arguments)).toEqual([
      { x: 1 },
      { x: 2 },
      { x: 3 },
    ])
  })

  test('an id repeated on every piece is one call; a missing id is made', () => {
    const events = stream([
      calls(call(undefined, 'a', 'f', '{"x"')),
      calls(call(undefined, 'a', 'f', ':1}')),
      calls(call(5, '', 'g', '{}')),
      finish('stop'),
    ])
    const { toolCalls, stop } = fold(events)
    expect(toolCalls).toMatchObject([
      { toolCallId: 'a', arguments: { x: 1 } },
      { toolName: 'g', arguments: {} },
    ])
    expect(toolCalls?.[1]?.toolCallId).toMatch(/^call_./)
    expect(stop?.stopReason).toBe('tool_use')
  })

  test('no arguments still give one delta; an object instead of text is taken', () => {
    const events = stream([
      calls({ index: 0, id: 'a', function: { name: 'f' } }),
      calls({ index: 1, id: 'b', function: { name: 'g', arguments: { z: 1 } } }),
      finish('tool_calls'),
    ])
    const deltas = events.filter((event) => event.type === 'tool_call_delta')
    expect(deltas.map((event) => event.delta.argumentsJson)).toEqual(['{"z":1}', ''])
    expect(fold(events).toolCalls?.map((each) => each.arguments)).toEqual([{}, { z: 1 }])
  })

  test('cut-off arguments are marked, never guessed', () => {
    const events = stream([calls(call(0, 'a', 'f', '{"path":"/tm')), finish('length')])
    expect(fold(events).toolCalls?.[0]).toMatchObject({
      arguments: {},
      invalidArguments: { text: '{"path":"/tm' },
    })
  })

  test('custom tools: free text becomes { input }; cut off, it does not run', () => {
    const custom = (input: string) => ({ index: 0, custom: { input } })
    const open = { index: 0, id: 'a', type: 'custom', custom: { name: 'sql', input: 'SELECT "' } }
    const whole = stream([calls(open), calls(custom('x"\n')), finish('tool_calls')])
    expect(fold(whole).toolCalls?.[0]).toMatchObject({ arguments: { input: 'SELECT "x"\n' } })
    const cut = stream([calls(open), finish('length')])
    expect(fold(cut).toolCalls?.[0]?.invalidArguments).toBeDefined()
  })

  test('the legacy function_call', () => {
    const events = stream([
      delta({ function_call: { name: 'f', arguments: '{"a"' } }),
      delta({ function_call: { arguments: ':1}' } }),
      finish('function_call'),
    ])
    expect(fold(events).toolCalls).toMatchObject([{ toolName: 'f', arguments: { a: 1 } }])
  })

  test('text behind a call keeps its place', () => {
    const events = stream([
      calls(call(0, 'a', 'f', '{}')),
      delta({ content: 'after' }),
      finish('tool_calls'),
    ])
    checkGrammar(events)
    expect(fold(events).metadata?.['acme']?.['order']).toEqual(['call', 'block'])
  })
})

describe('media', () => {
  test('audio in pieces, its transcript and id kept for replay', () => {
    const events = stream(
      [
        delta({ audio: { id: 'au', transcript: 'Hi ' } }),
        delta({ audio: { data: 'AQI=' } }),
        delta({ audio: { data: 'Aw==', transcript: 'you', expires_at: 9 } }),
        finish('stop'),
      ],
      requestOf({ params: { audio: { format: 'mp3', voice: 'x' } } }),
    )
    checkGrammar(events)
    expect(fold(events).content).toEqual([
      {
        type: 'audio',
        data: new Uint8Array([1, 2, 3]),
        mimeType: 'audio/mpeg',
        metadata: {
          acme: {
            api: 'openai-chat',
            native: { id: 'au', transcript: 'Hi you', expires_at: 9 },
          },
        },
      },
    ])
  })

  test('images of OpenRouter', () => {
    const image = { type: 'image_url', image_url: { url: 'data:image/webp;base64,AQI=' } }
    const events = stream([delta({ content: 'Here:', images: [image] }), finish('stop')])
    checkGrammar(events)
    expect(fold(events).content[1]).toMatchObject({
      type: 'image',
      mimeType: 'image/webp',
      source: { type: 'bytes', data: new Uint8Array([1, 2]) },
    })
  })
})

describe('structure', () => {
  test('a wrapped answer is unwrapped, wherever it is cut', () => {
    const text = ' { "value" : [1, {"a": "}"}] } '
    const request = requestOf({ structure: { type: 'array' } })
    for (let cut = 0; cut <= text.length; cut++) {
      const events = stream(
        [
          delta({ content: text.slice(0, cut) }),
          delta({ content: text.slice(cut) }),
          finish('stop'),
        ],
        request,
      )
      expect(fold(events).content).toEqual([{ type: 'text', text: '[1, {"a": "}"}] ' }])
    }
  })
})

describe('what is not an answer', () => {
  const failure = (run: () => unknown) => {
    try {
      run()
    } catch (error) {
      return error
    }
    throw new Error('nothing was thrown')
  }

  test.each([
    ['no finish reason', [delta({ content: 'x' })], 'INVALID_RESPONSE'],
    ['nothing at all', [], 'INVALID_RESPONSE'],
    ['no choices', ['[DONE]'], 'INVALID_RESPONSE'],
    ['broken JSON', ['{"choices":'], 'INVALID_RESPONSE'],
    ['a list', ['[null]'], 'INVALID_RESPONSE'],
    ['null', ['null'], 'INVALID_RESPONSE'],
    ['wrong kinds', [{ choices: [{ delta: { tool_calls: 7 } }] }], 'INVALID_RESPONSE'],
    ['the finish reason error', [finish('error')], 'PROVIDER_ERROR'],
    ['no resources left', [finish('insufficient_system_resource')], 'PROVIDER_ERROR'],
    [
      'an error of OpenRouter',
      [finish('error', { error: { code: 429, message: 'slow down' } })],
      'RATE_LIMITED',
    ],
    [
      'an error of Groq',
      [{ x_groq: { error: { message: 'over', type: 'server_error' } } }],
      'PROVIDER_ERROR',
    ],
    ['an error in words', [{ error: 'maximum context length is 10' }], 'CONTEXT_LENGTH_EXCEEDED'],
  ] as [string, (JsonObject | string)[], string][])('%s', (_, frames, code) => {
    expect(failure(() => stream(frames))).toMatchObject({ code, provider: 'acme', modality: 'llm' })
  })

  test('an event named error, whatever its shape', () => {
    const decoder = openaiChat.createDecoder(context)
    const told = { code: 'insufficient_quota', message: 'Pay first' }
    expect(() => decoder.push(frame(told, 'error'))).toThrow(
      expect.objectContaining({ code: 'QUOTA_EXCEEDED', message: 'Pay first' }),
    )
  })

  test('a stream that says DONE without a reason is complete', () => {
    const events = stream([delta({ content: 'x' }), '[DONE]'])
    checkGrammar(events)
    expect(fold(events).stop?.stopReason).toBe('other')
  })

  test('frames behind the end are ignored', () => {
    const decoder = openaiChat.createDecoder(context)
    decoder.push(frame(delta({ content: 'x' })))
    decoder.push(frame('[DONE]'))
    expect(decoder.push(frame(delta({ content: 'y' })))).toEqual([])
    expect(decoder.end()).toEqual([])
  })

  test('further choices are ignored with a warning', () => {
    const second = { id: 'c', choices: [{ index: 1, delta: { content: 'B' } }] }
    const events = stream([delta({ content: 'A' }), second, finish('stop')])
    expect(fold(events).content).toEqual([{ type: 'text', text: 'A' }])
    expect(fold(events).stop?.warnings).toMatchObject([{ code: 'choices_ignored' }])
  })
})

describe('a whole answer', () => {
  const whole = (message: JsonObject, rest: JsonObject = {}) =>
    openaiChat.decodeResponse(
      { id: 'c1', model: 'm-1', choices: [{ index: 0, message, finish_reason: 'stop' }], ...rest },
      context,
    )

  test('puts reasoning first, whatever the order of fields', () => {
    const events = whole({ role: 'assistant', content: 'Yes', reasoning_content: 'Hm' })
    checkGrammar(events)
    expect(fold(events).content.map((block) => block.type)).toEqual(['reasoning', 'text'])
  })

  test('parallel calls without an index', () => {
    const call = (id: string) => ({
      id,
      type: 'function',
      function: { name: 'f', arguments: '{}' },
    })
    const { toolCalls } = fold(whole({ content: null, tool_calls: [call('a'), call('b')] }))
    expect(toolCalls?.map((each) => each.toolCallId)).toEqual(['a', 'b'])
  })

  test('empty content is an empty message', () => {
    expect(fold(whole({ content: '' })).content).toEqual([])
  })

  test.each([
    ['no choices', { choices: [] }, 'INVALID_RESPONSE'],
    ['an error body', { error: { message: 'no', code: 'insufficient_quota' } }, 'QUOTA_EXCEEDED'],
    ['text', 'hello', 'INVALID_RESPONSE'],
    ['null choices', { choices: null }, 'INVALID_RESPONSE'],
  ])('%s', (_, body, code) => {
    expect(() => openaiChat.decodeResponse(body, context)).toThrow(
      expect.objectContaining({ code }),
    )
  })
})
