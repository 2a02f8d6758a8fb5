/** What each vendor and each combination can do. */
import { createProvider, image, llm, type BoundImageModel, type LLMCapabilities } from '@skein/ai'
import { fallback } from '@skein/ai/routing'
import { scripted } from '@skein/ai/testing'
import { describe, expect, test } from 'vitest'
import { llmVendors } from './support/vendors.ts'

const apiKey = 'sk-test-0123456789'

describe('capabilities', () => {
  /** The kinds of input besides text, by vendor and API; everything else is supported by all. */
  const inputs: readonly (readonly [vendor: string, api: string | undefined, kinds: string])[] = [
    ['anthropic', undefined, 'image document'],
    ['azure-openai', undefined, 'image document'],
    ['azure-openai', 'chat', 'image document audio'],
    ['bedrock', undefined, 'image document video audio'],
    ['cerebras', undefined, 'image'],
    ['deepseek', undefined, ''],
    ['google', undefined, 'image document video audio'],
    ['groq', undefined, 'image'],
    ['mistral', undefined, 'image document audio'],
    ['moonshot', undefined, 'image video'],
    ['ollama', undefined, 'image'],
    ['openai', undefined, 'image document'],
    ['openai', 'chat', 'image document audio'],
    ['openai-compatible', undefined, 'image document audio'],
    ['openrouter', undefined, 'image document video audio'],
    ['openrouter', 'responses', 'image document video audio'],
    ['vertex', undefined, 'image document video audio'],
    ['xai', undefined, 'image'],
    ['xai', 'responses', 'image'],
  ]

  test('every shipped vendor is listed', () => {
    const listed = new Set(inputs.map(([vendor]) => vendor))
    expect([...listed].toSorted()).toEqual(llmVendors.map(({ name }) => name).toSorted())
  })

  test.each(inputs)('UPP-050 %s, API %s: text, %s', (vendor, api, kinds) => {
    const { provider } = llmVendors.find(({ name }) => name === vendor)!
    const model = provider('m', (api && { api }) as never)
    const has = (kind: string): boolean => kinds.split(' ').includes(kind)
    const expected = {
      streaming: true,
      tools: true,
      structuredOutput: true,
      imageInput: has('image'),
      documentInput: has('document'),
      videoInput: has('video'),
      audioInput: has('audio'),
    }
    expect(llm({ model, config: { apiKey } }).capabilities).toEqual(expected)
    if (api === undefined) expect(provider.handlers.llm!.capabilities).toEqual(expected)
  })

  test.each(llmVendors)(
    'UPP-051 $name: no user can change them, for itself or others',
    (vendor) => {
      const told = [
        () => vendor.provider.handlers.llm!.capabilities,
        () => llm({ model: vendor.provider('m'), config: { apiKey } }).capabilities,
        () => fallback([vendor.provider('m')]).provider.handlers.llm!.capabilities,
      ]
      for (const capabilities of told) {
        const before = { ...capabilities() }
        expect(Reflect.set(capabilities(), 'streaming', 'changed')).toBe(false)
        expect(capabilities()).toEqual(before)
      }
    },
  )

  const names = Object.keys(llm({ model: scripted([]) }).capabilities) as (keyof LLMCapabilities)[]

  test.each(names)('UPP-050 %s of a combination is what any of its members has', (name) => {
    const lacking = scripted([], { capabilities: { [name]: false } })
    const { capabilities } = llm({ model: fallback([lacking, lacking]) })
    expect(names.filter((one) => !capabilities[one])).toEqual([name])
    const one = llm({ model: fallback([lacking, scripted([])]) })
    expect(names.filter((other) => !one.capabilities[other])).toEqual([])
  })

  test('UPP-051 those of images are as they were when the instance was made', () => {
    const changing = { generate: true, streaming: false, edit: false }
    const bound: BoundImageModel = {
      modelId: 'm',
      provider: 'p',
      capabilities: changing,
      generate: async () => ({ images: [] }),
    }
    const instance = image({ model: createProvider({ name: 'p', image: { bind: () => bound } })('m') }) // prettier-ignore
    changing.edit = true
    expect(instance.capabilities).toEqual({ generate: true, streaming: false, edit: false })
    expect(Object.isFrozen(instance.capabilities)).toBe(true)
  })
})
