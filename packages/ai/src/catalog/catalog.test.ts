import { expect, test } from 'vitest'
import { llm } from '../llm.ts'
import { costMiddleware, findModel } from '../middleware/cost.ts'
import { scripted, says } from '../testing/scripted.ts'
import { anthropic } from '../vendors/anthropic.ts'
import { vendors } from '../vendors/list.ts'
import { modelCatalog, catalogDate } from './catalog.ts'

test('every entry is dated, names its sources, and belongs to a vendor of ours', () => {
  expect(catalogDate).toMatch(/^\d{4}-\d{2}-\d{2}$/)
  const names = new Set(vendors.map(({ name }) => name))
  expect(Object.keys(modelCatalog).length).toBeGreaterThan(250)
  for (const [key, { sources, limits, prices }] of Object.entries(modelCatalog)) {
    expect(names).toContain(key.split('/')[0])
    expect(sources.length).toBeGreaterThan(0)
    for (const source of sources) expect(source).toMatch(/^@\S+ \d+\.\d+\.\d+$/)
    for (const limit of [limits.contextTokens, limits.outputTokens])
      expect(limit === null || limit > 0).toBe(true)
    if (prices) expect(prices.input).toBeGreaterThanOrEqual(0)
  }
})

test('what no source says is null', () => {
  expect(modelCatalog['anthropic/claude-v1']).toMatchObject({
    limits: { contextTokens: null, outputTokens: null },
    modalities: null,
    sources: [expect.stringContaining('genai-prices')],
  })
})

test('a version in the name finds the same entry', () => {
  const entry = findModel(modelCatalog, 'anthropic', 'claude-sonnet-4-5-20250929')
  expect(entry).toBe(modelCatalog['anthropic/claude-sonnet-4-5'])
  expect(entry?.limits).toEqual({ contextTokens: 200_000, outputTokens: 64_000 })
})

test('costs come from it, and an entry of the application wins', async () => {
  const catalog = { ...modelCatalog, 'scripted/mine': { prices: { input: 1e6, output: 0 } } }
  const model = scripted([says('hi')], { modelId: 'mine' })
  const turn = await llm({ model, middleware: [costMiddleware({ catalog })] }).generate('hello')
  expect(turn.usage.costUsd).toBe(turn.usage.inputTokens)
})

test("Anthropic's default of max_tokens is the output limit in the catalog", async () => {
  const entries = Object.entries(modelCatalog).filter(([key]) => key.startsWith('anthropic/'))
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
