import { isDeepFrozen, type JsonObject } from '@skein/base'
import { isUPPError, llm, NoRetry } from '@skein/ai'
import { existsSync } from 'node:fs'
import { join } from 'node:path'
import { describe, expect, test } from 'vitest'
import { checkGrammar } from '../../packages/ai/test/wires/wire-cases.ts'
import { requests, type RequestName } from './cases/requests.ts'
import { askVendor, ways } from './support/ask-vendor.ts'
import { stub } from './support/stub.ts'
import { llmVendors } from './support/vendors.ts'
import { vendorCases } from './vendors.ts'

/** A vendor with a wire of its own may have its goldens in a file of its own. */
const hasOwnFile = (vendor: string): boolean =>
  existsSync(join(import.meta.dirname, `${vendor}.test.ts`))

test('every shipped vendor has a case', () => {
  const providers = new Set(['somewhere', ...vendorCases.map(({ provider }) => provider)])
  const missing = llmVendors.filter(
    ({ name, provider }) => !providers.has(provider.name) && !hasOwnFile(name),
  )
  expect(missing.map(({ name }) => name)).toEqual([])
})

const isSource = (name: RequestName): boolean => /^(image|document|audio|video)/.test(name)
const golden = vendorCases.flatMap((vendor) =>
  (Object.keys(requests) as RequestName[]).map((name) => ({
    title: `${isSource(name) ? 'UPP-071 UPP-057' : 'UPP-057'} ${vendor.name}: ${name}`,
    vendor,
    name,
    expected: vendor.bodies[name],
  })),
)

describe('requests', () => {
  test.each(golden)('$title', async ({ vendor, name, expected }) => {
    const { answers } = vendor
    const answer = name === 'structure' ? answers.structure : answers.text
    if (expected === 'refused') {
      const asking = askVendor(vendor, name, { answers: answer })
      return expect(asking).rejects.toMatchObject({
        code: 'INVALID_REQUEST',
        provider: vendor.provider,
        modality: 'llm',
      })
    }
    const { body, seen, turn } = await askVendor(vendor, name, { answers: answer })
    expect(body).toEqual(expected)
    expect(new URL(seen[0]!.url).pathname.endsWith(vendor.path)).toBe(true)
    return expect(isDeepFrozen(turn.messages)).toBe(true)
  })

  test.each(vendorCases)(
    'UPP-005 UPP-006 $name: without params only what the vendor needs is sent',
    async (vendor) => {
      const { body } = await askVendor(vendor, 'text')
      expect(body).toEqual(vendor.bodies.text)
      const streamed = await askVendor(vendor, 'text', { way: 'stream' })
      expect(streamed.body).toEqual({
        ...(vendor.bodies.text as JsonObject),
        ...vendor.streamFields,
      })
    },
  )

  test.each(vendorCases)(
    'UPP-059 $name: the system prompt is where the vendor wants it',
    async (vendor) => {
      const { body } = await askVendor(vendor, 'system')
      expect(JSON.stringify(vendor.systemOf(body))).toContain('Be brief.')
      expect(vendor.systemOf(body)).toEqual(vendor.systemOf(vendor.bodies.system as JsonObject))
    },
  )
})

describe.each(ways)('answers through %s', (way) => {
  test.each(vendorCases)('UPP-058 UPP-080 $name: text and usage', async (vendor) => {
    const { turn } = await askVendor(vendor, 'text', { way })
    expect(turn.response.text).toBe('Hello there')
    expect(turn.response.content.map((block) => block.type)).toEqual(['text'])
    expect(turn.stopReason).toBe('end_turn')
    expect(turn.usage).toMatchObject({
      inputTokens: 3,
      outputTokens: 2,
      totalTokens: 5,
      cacheReadTokens: 0,
      cacheWriteTokens: 0,
    })
  })

  test.each(vendorCases)('UPP-058 $name: parallel tool calls', async (vendor) => {
    const { turn } = await askVendor(vendor, 'tools', {
      way,
      answers: vendor.answers.calls,
      options: { toolStrategy: { maxIterations: 0 } },
    })
    const called = turn.response.toolCalls ?? []
    expect(called.map((call) => [call.toolName, call.arguments])).toEqual([
      ['weather', { city: 'Oslo' }],
      ['weather', { city: 'Rome' }],
    ])
    expect(new Set(called.map((call) => call.toolCallId)).size).toBe(2)
    expect(turn.stopReason).toBe('tool_use')
  })

  test.each(vendorCases)('UPP-058 $name: an empty answer', async (vendor) => {
    const { turn } = await askVendor(vendor, 'text', { way, answers: vendor.answers.empty })
    expect(turn.response.text).toBe('')
    expect(turn.response.hasToolCalls).toBe(false)
  })

  test.each(vendorCases.filter(({ answers }) => answers.refusal))(
    'UPP-058 $name: a refusal',
    async (vendor) => {
      const refusal = vendor.answers.refusal!
      const { turn } = await askVendor(vendor, 'text', { way, answers: refusal })
      expect(turn.response.text).toBe(refusal.text)
      expect(turn.stopReason).toBe(refusal.stopReason)
    },
  )
})

describe('events', () => {
  const answered = vendorCases.flatMap((vendor) =>
    (['text', 'calls', 'empty', 'refusal'] as const).flatMap((name) => {
      const answer = vendor.answers[name]
      return answer ? [{ title: `UPP-089 ${vendor.name}: ${name}`, vendor, answer }] : []
    }),
  )
  test.each(answered)('$title', async ({ vendor, answer }) => {
    const { events } = await askVendor(vendor, 'tools', {
      way: 'stream',
      answers: answer,
      options: { toolStrategy: { maxIterations: 0 } },
    })
    checkGrammar(events)
    for (const event of events) {
      expect(typeof event.index).toBe('number')
      expect(event.delta).toBeTypeOf('object')
    }
  })
})

const failures = vendorCases.flatMap((vendor) =>
  vendor.errors.map((error) => ({ title: `UPP-060 ${vendor.name}: ${error.name}`, vendor, error })),
)

describe('errors', () => {
  test.each(failures)('$title', async ({ vendor, error }) => {
    const { fetch } = stub(() => Response.json(error.body, { status: error.status }))
    const config = { apiKey: 'key', fetch, retryStrategy: new NoRetry() }
    const model = llm({ model: vendor.model, config })
    for (const way of ways) {
      const failure = await Promise.resolve(
        way === 'generate' ? model.generate('x') : model.stream('x').turn,
      )
        .then(() => undefined)
        .catch((thrown: unknown) => thrown)
      expect(isUPPError(failure)).toBe(true)
      expect(failure).toMatchObject({
        code: error.code,
        provider: vendor.provider,
        modality: 'llm',
        message: expect.stringContaining(error.message),
        ...(error.status >= 400 && { statusCode: error.status }),
      })
    }
  })
})
