import { readFileSync } from 'node:fs'
import { join } from 'node:path'
import { describe, expect, test } from 'vitest'
import { catalogueText } from '../../../../scripts/catalogue.ts'
import { peersOf } from '../../../../scripts/peers.ts'
import { llm } from '../llm.ts'
import { costMiddleware, findModel, tokenCost } from '../middleware/cost.ts'
import { scripted, says } from '../testing/scripted.ts'
import { zeroUsage } from '../contract/turn.ts'
import { anthropic } from '../vendors/anthropic.ts'
import { vendors } from '../vendors/list.ts'
import { modelCatalogue, catalogueDate } from './catalogue.ts'

const peers = peersOf('packages/ai/test/peers')

test('every entry is dated, names its sources, and belongs to a vendor of ours', () => {
  expect(catalogueDate).toMatch(/^\d{4}-\d{2}-\d{2}$/)
  const names = new Set(vendors.map(({ name }) => name))
  expect(Object.keys(modelCatalogue).length).toBeGreaterThan(250)
  for (const [key, { sources, limits, prices }] of Object.entries(modelCatalogue)) {
    expect(names).toContain(key.split('/')[0])
    expect(sources.length).toBeGreaterThan(0)
    for (const source of sources) expect(source).toMatch(/^@\S+ \d+\.\d+\.\d+$/)
    for (const limit of [limits.contextTokens, limits.outputTokens])
      expect(limit === null || limit > 0).toBe(true)
    if (prices) expect(prices.input).toBeGreaterThanOrEqual(0)
  }
})

test('what no source says is null', () => {
  expect(modelCatalogue['anthropic/claude-v1']).toMatchObject({
    limits: { contextTokens: null, outputTokens: null },
    modalities: null,
    sources: [expect.stringContaining('genai-prices')],
  })
})

test('a version in the name finds the same entry', () => {
  const entry = findModel(modelCatalogue, 'anthropic', 'claude-sonnet-4-5-20250929')
  expect(entry).toBe(modelCatalogue['anthropic/claude-sonnet-4-5'])
  expect(entry?.limits).toEqual({ contextTokens: 200_000, outputTokens: 64_000 })
})

test('costs come from it, and an entry of the application wins', async () => {
  const catalog = { ...modelCatalogue, 'scripted/mine': { prices: { input: 1e6, output: 0 } } }
  const model = scripted([says('hi')], { modelId: 'mine' })
  const turn = await llm({ model, middleware: [costMiddleware({ catalog })] }).generate('hello')
  expect(turn.usage.costUsd).toBe(turn.usage.inputTokens)
})

test("Anthropic's default of max_tokens is the output limit in the catalogue", async () => {
  const entries = Object.entries(modelCatalogue).filter(([key]) => key.startsWith('anthropic/'))
  for (const [key, { limits }] of entries) {
    let sent: unknown
    const fetch = async (_: string, init: RequestInit): Promise<Response> => {
      sent = (JSON.parse(init.body as string) as { max_tokens: number }).max_tokens
      return new Response('{}', { status: 400 })
    }
    const model = anthropic(key.slice('anthropic/'.length))
    await llm({ model, config: { apiKey: 'k', fetch } })
      .generate('hi')
      .catch(() => {})
    expect([key, sent]).toEqual([key, limits.outputTokens ?? 4096])
  }
})

describe.runIf(peers.isInstalled)('against its sources', () => {
  test('the file is what the script makes of the pinned packages', async () => {
    const file = readFileSync(join(import.meta.dirname, 'data.ts'), 'utf8')
    expect(await catalogueText(catalogueDate)).toBe(file)
  })

  test('costs are those that genai-prices calculates', async () => {
    const { calcPrice } = await peers.load<{
      calcPrice(usage: object, id: string, options: object): { total_price: number } | null
    }>('@pydantic/genai-prices')
    let compared = 0
    for (const [key, { prices }] of Object.entries(modelCatalogue)) {
      const [provider, ...rest] = key.split('/')
      if (!prices || !['anthropic', 'openai', 'google'].includes(provider!)) continue
      for (const inputTokens of [1000, 500_000]) {
        const told = calcPrice({ input_tokens: inputTokens, output_tokens: 100 }, rest.join('/'), {
          providerId: provider,
          timestamp: new Date(`${catalogueDate}T12:00:00Z`),
        })
        const usage = { ...zeroUsage, inputTokens, outputTokens: 100 }
        expect([key, tokenCost(usage, prices).toFixed(9)]).toEqual([key, told?.total_price.toFixed(9)]) // prettier-ignore
        compared++
      }
    }
    expect(compared).toBeGreaterThan(200)
  })
})
