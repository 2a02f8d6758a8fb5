import type { JsonObject } from '@skein/base'
import { llm, NoRetry, type LLMCapabilities, type UserContent } from '@skein/ai'
import { describe, expect, test } from 'vitest'
import { checkGrammar } from '../../packages/ai/test/wires/wire-cases.ts'
import { blocks, weather } from './cases/requests.ts'
import { answering, askVendor, bodyOf, ways } from './support/ask-vendor.ts'
import { stub } from './support/stub.ts'
import { llmVendors } from './support/vendors.ts'
import { vendorCases } from './vendors.ts'

/** In addition to text, by the documentation of each API. All of them stream, call tools and answer in JSON. */
const inputs: Record<string, readonly string[]> = {
  anthropic: ['image', 'document'],
  'azure-openai': ['image', 'document'],
  bedrock: ['image', 'document', 'video', 'audio'],
  vertex: ['image', 'document', 'video', 'audio'],
  cerebras: ['image'],
  deepseek: [],
  google: ['image', 'document', 'video', 'audio'],
  groq: ['image'],
  mistral: ['image', 'document', 'audio'],
  moonshot: ['image', 'video'],
  ollama: ['image'],
  openai: ['image', 'document'],
  'openai-compatible': ['image', 'document', 'audio'],
  openrouter: ['image', 'document', 'video', 'audio'],
  xai: ['image'],
}

test.each(llmVendors)('UPP-050 UPP-051 $name: what its API can do', ({ name, provider }) => {
  const expected = {
    streaming: true,
    tools: true,
    structuredOutput: true,
    imageInput: inputs[name]?.includes('image'),
    documentInput: inputs[name]?.includes('document'),
    videoInput: inputs[name]?.includes('video'),
    audioInput: inputs[name]?.includes('audio'),
  }
  const model = llm({ model: provider('m') })
  expect(model.capabilities).toEqual(expected)
  expect(provider.handlers.llm?.capabilities).toEqual(expected)
  expect(() => Object.assign(model.capabilities, { audioInput: 'yes' })).toThrow(TypeError)
})

describe('levels of UPP §16.1', () => {
  test.each(vendorCases)(
    'UPP-144 $name: core: text in and out, system, capabilities, errors',
    async (vendor) => {
      const { turn, body } = await askVendor(vendor, 'system')
      expect(turn.response.text).toBe('Hello there')
      expect(JSON.stringify(body)).toContain('Be brief.')
      const { fetch } = stub(() => new Response('oops', { status: 500 }))
      const config = { apiKey: 'key', fetch, retryStrategy: new NoRetry() }
      const model = llm({ model: vendor.model, config })
      const flags = Object.values(model.capabilities)
      expect(flags).toHaveLength(7)
      expect(flags.every((flag) => typeof flag === 'boolean')).toBe(true)
      expect(Object.isFrozen(model.capabilities)).toBe(true)
      await expect(model.generate('x')).rejects.toMatchObject({
        code: 'PROVIDER_ERROR',
        provider: vendor.provider,
        modality: 'llm',
        statusCode: 500,
      })
    },
  )

  test.each(vendorCases)('UPP-145 $name: streaming: events of the grammar', async (vendor) => {
    const { events, turn } = await askVendor(vendor, 'text', { way: 'stream' })
    checkGrammar(events)
    const told = events.filter((event) => event.type === 'text_delta')
    expect(told.map((event) => event.delta.text).join('')).toBe(turn.response.text)
    const waited = await askVendor(vendor, 'text')
    expect(turn.response.content).toEqual(waited.turn.response.content)
    expect(turn.response.metadata).toEqual(waited.turn.response.metadata)
    expect(turn.usage).toEqual(waited.turn.usage)
  })

  test.each(vendorCases)('UPP-146 $name: tools: defined, called, answered', async (vendor) => {
    for (const way of ways) {
      const { turn, seen } = await askVendor(vendor, 'tools', {
        way,
        answers: [vendor.answers.calls, vendor.answers.text],
      })
      expect(turn.cycles).toBe(2)
      expect(turn.toolExecutions.map(({ result }) => result)).toEqual([
        'Rain in Oslo',
        'Rain in Rome',
      ])
      const second = JSON.stringify(bodyOf(seen[1]))
      expect(second).toContain('Rain in Oslo')
      expect(second).toContain('Rain in Rome')
      expect(turn.response.text).toBe('Hello there')
    }
  })

  test.each(vendorCases)(
    'UPP-146 $name: tools: one that failed is said to have',
    async (vendor) => {
      const run = (): never => {
        throw new RangeError('no such city')
      }
      const { seen } = await askVendor(vendor, 'tools', {
        answers: [vendor.answers.calls, vendor.answers.text],
        options: { tools: [{ ...weather, run }] },
      })
      const [first, second] = seen.map((one) => JSON.stringify(bodyOf(one)))
      expect(first).not.toMatch(/error/i)
      expect(second).toContain('no such city')
      expect(second).toMatch(/error/i)
    },
  )

  test.each(vendorCases)(
    'UPP-147 UPP-124 $name: structure: a schema goes out, data comes back',
    async (vendor) => {
      for (const way of ways) {
        const { turn, body } = await askVendor(vendor, 'structure', {
          way,
          answers: vendor.answers.structure,
        })
        expect(turn.data).toEqual({ name: 'Ada' })
        const golden = vendor.bodies.structure as JsonObject
        expect(body).toEqual(way === 'stream' ? { ...golden, ...vendor.streamFields } : golden)
      }
    },
  )

  const inputs: readonly [keyof LLMCapabilities, UserContent][] = [
    ['imageInput', blocks.imageBase64],
    ['documentInput', blocks.documentBase64],
    ['audioInput', blocks.audio],
    ['videoInput', blocks.video],
  ]
  const multimodal = vendorCases.flatMap((vendor) =>
    inputs.map(([capability, block]) => ({
      title: `UPP-148 ${vendor.name}: ${block.type} input`,
      vendor,
      capability,
      block,
    })),
  )
  test.each(multimodal)('$title is sent when declared, refused when not', async (each) => {
    const { vendor, capability, block } = each
    const { fetch, seen } = answering(vendor.answers.text)
    const config = { apiKey: 'key', fetch, retryStrategy: new NoRetry() }
    const model = llm({ model: vendor.model, config, tools: [weather] })
    if (model.capabilities[capability]) {
      await model.generate(block)
      expect(JSON.stringify(bodyOf(seen[0]) satisfies JsonObject)).toContain('AQI=')
      return
    }
    await expect(model.generate(block)).rejects.toMatchObject({
      code: 'INVALID_REQUEST',
      provider: vendor.provider,
    })
    expect(seen).toEqual([])
  })
})
