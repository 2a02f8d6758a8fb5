import { seededRandom } from '@skein/base'
import { expect, test } from 'vitest'
import { UPPError } from '../contract/error.ts'
import { llm } from '../llm.ts'
import { Image } from '../media/image.ts'
import { AssistantMessage, UserMessage } from '../contract/message.ts'
import type { ModelReference } from '../contract/provider.ts'
import { calls, fails, says, scripted } from '../testing/index.ts'
import { fallback } from './fallback.ts'
import { route } from './route.ts'

const always = (text: string, options: object = {}) => scripted(() => says(text), options)

async function answers(model: ModelReference, count: number): Promise<string[]> {
  const instance = llm({ model })
  const texts: string[] = []
  for (let i = 0; i < count; i++) texts.push((await instance.generate('Hi')).response.text)
  return texts
}

test('the first model whose condition holds answers', async () => {
  const model = route([
    {
      model: always('long'),
      when: (request) => 'messages' in request && request.messages.length > 1,
    },
    { model: always('short') },
  ])
  const instance = llm({ model })
  const turn = await instance.generate('Hi')
  expect(turn.response.text).toBe('short')
  expect((await instance.generate(turn.messages, 'Again')).response.text).toBe('long')
})

test('in turn', async () => {
  const model = route([always('a'), always('b'), always('c')], { strategy: 'round_robin' })
  expect(await answers(model, 7)).toEqual(['a', 'b', 'c', 'a', 'b', 'c', 'a'])
})

test('by weight, from a seed', async () => {
  const model = route(
    [
      { model: always('a'), weight: 3 },
      { model: always('b'), weight: 1 },
      { model: always('never'), weight: 0 },
    ],
    { strategy: 'weighted', random: seededRandom(7) },
  )
  const texts = await answers(model, 400)
  const share = texts.filter((text) => text === 'a').length / texts.length
  expect(share).toBeGreaterThan(0.7)
  expect(share).toBeLessThan(0.8)
  expect(texts).not.toContain('never')
})

test('the inferences of one call stay with one model', async () => {
  const script = () => [calls('now', {}), says('Done.')]
  const a = scripted(script())
  const b = scripted(script())
  const now = { name: 'now', description: '', parameters: { type: 'object' }, run: () => 'noon' }
  const model = route([a, b], { strategy: 'round_robin' })
  await llm({ model, tools: [now] }).generate('Time?')
  expect([a.requests.length, b.requests.length]).toEqual([2, 0])
})

test('a model that cannot do what is asked does not fit', async () => {
  const blind = always('blind', { capabilities: { imageInput: false, tools: false } })
  const model = route([blind, always('seeing', { capabilities: { tools: false } })])
  const picture = Image.fromBytes(new Uint8Array([1]), 'image/png').toBlock()
  const instance = llm({ model })
  expect((await instance.generate('Hi')).response.text).toBe('blind')
  const seen = await instance.generate(new UserMessage([picture]))
  expect(seen.response.text).toBe('seeing')
  expect(instance.capabilities).toMatchObject({ imageInput: true, tools: false })
})

test('a model that cannot be shown a part of the history fits only if no other can', async () => {
  const blind = always('blind', { capabilities: { imageInput: false } })
  const seeing = always('seeing')
  const picture = Image.fromBytes(new Uint8Array([1]), 'image/png').toBlock()
  const history = [new UserMessage([picture]), new AssistantMessage('A cat.')]
  const asked = async (model: ModelReference) => llm({ model }).generate(history, 'And now?')
  expect((await asked(route([blind, seeing]))).response.text).toBe('seeing')
  const turn = await asked(route([blind]))
  expect(turn.response.text).toBe('blind')
  expect(turn.warnings).toMatchObject([{ code: 'unsupported_block' }])
})

test('a request that no model takes is refused', async () => {
  const model = route([{ model: always('x'), when: () => false }])
  await expect(llm({ model }).generate('Hi')).rejects.toMatchObject({
    code: 'INVALID_REQUEST',
    message: 'No model of the route takes this request.',
  })
})

test('the same model may be there twice, and a fallback may be a member', async () => {
  const one = scripted((_, index) => says(`${index}`))
  const model = route([
    { model: one, params: { effort: 'high' }, when: (request) => request.params['hard'] === true },
    { model: fallback([scripted([fails()]), one]), params: { effort: 'low' } },
  ])
  await llm({ model, params: { hard: true } }).generate('Hi')
  await llm({ model }).generate('Hi')
  expect(one.requests.map(({ params }) => params['effort'])).toEqual(['high', 'low'])
})

test('a weight that is no weight is refused', () => {
  expect(() => route([{ model: always('x'), weight: -1 }])).toThrow(UPPError)
  expect(() => route([{ model: always('x'), weight: Number.NaN }])).toThrow(UPPError)
})
