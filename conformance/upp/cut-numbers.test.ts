/** A number is known to be whole only when something follows it: at the end of a cut answer it is no data. */
import { llm } from '@skein/ai'
import { groq } from '@skein/ai/groq'
import { says, scripted, stops } from '@skein/ai/testing'
import { describe, expect, test } from 'vitest'
import { stub } from './support/stub.ts'

const structure = { type: 'integer' }
const cutReasons = ['max_tokens', 'context_window', 'content_filter'] as const

describe.each(cutReasons)('%s', (reason) => {
  test.each(['12', '-1', '0', '1.5', '1e3', ' 12'])(
    'UPP-127 the number %j at the end of the answer is refused, and the turn is kept',
    async (text) => {
      const model = scripted(() => [says(text), stops(reason)])
      const instance = llm({ model, structure, repair: 2 })
      const refused = {
        code: 'INVALID_RESPONSE',
        message: expect.stringContaining(reason) as unknown,
        turn: { response: { text }, stopReason: reason },
      }
      await expect(instance.generate('x')).rejects.toMatchObject(refused)
      await expect(instance.stream('x').turn).rejects.toMatchObject(refused)
      expect(model.requests).toHaveLength(2) // another answer would be cut at the same place
    },
  )

  test.each([
    ['12\n', 12],
    ['[1,2]', [1, 2]],
    ['{"a":1}', { a: 1 }],
    ['"12"', '12'],
    ['true', true],
  ])('UPP-127 UPP-124 %j is whole, so it is data', async (text, data) => {
    const model = scripted([[says(text), stops(reason)]])
    expect((await llm({ model, structure }).generate('x')).data).toEqual(data)
  })
})

test.each(['end_turn', 'stop_sequence', 'other'] as const)(
  'UPP-127 UPP-124 a number before %s is data',
  async (reason) => {
    const model = scripted([[says('12'), stops(reason)]])
    expect((await llm({ model, structure }).generate('x')).data).toBe(12)
  },
)

describe('a vendor whose answers are objects, so that the number is sent as `{"value": …}`', () => {
  const usage = { prompt_tokens: 1, completion_tokens: 1, total_tokens: 2 }
  function wrapped(content: string, finish_reason: string) {
    const frames = [
      { choices: [{ index: 0, delta: { role: 'assistant', content } }] },
      { choices: [{ index: 0, delta: {}, finish_reason }], usage },
    ]
    const { fetch } = stub(({ body }) =>
      body.includes('"stream":true')
        ? new Response(frames.map((frame) => `data: ${JSON.stringify(frame)}\n\n`).join(''), {
            headers: { 'content-type': 'text/event-stream' },
          })
        : Response.json({
            choices: [{ index: 0, message: { role: 'assistant', content }, finish_reason }],
            usage,
          }),
    )
    return llm({ model: groq('m'), structure, config: { apiKey: 'k', fetch } })
  }

  test('UPP-127 the first digits of a longer number are refused', async () => {
    const instance = wrapped('{"value": 12', 'length')
    const refused = { code: 'INVALID_RESPONSE', provider: 'groq' }
    await expect(instance.generate('x')).rejects.toMatchObject(refused)
    await expect(instance.stream('x').turn).rejects.toMatchObject(refused)
  })

  test('UPP-127 UPP-124 the whole number is data', async () => {
    const instance = wrapped('{"value": 1234}', 'stop')
    expect((await instance.generate('x')).data).toBe(1234)
    expect((await instance.stream('x').turn).data).toBe(1234)
  })
})
