import { readFileSync } from 'node:fs'
import { join } from 'node:path'
import { describe, expect, test } from 'vitest'
import { catalogText } from '../../../../scripts/catalog.ts'
import { peersOf } from '../../../../scripts/peers.ts'
import { zeroUsage } from '../contract/turn.ts'
import { tokenCost } from '../middleware/cost.ts'
import { modelCatalog, catalogDate } from './catalog.ts'

const peers = peersOf('sdks')

describe.runIf(peers.isInstalled)('against its sources', () => {
  test('the file is what the script makes of the pinned packages', async () => {
    const file = readFileSync(join(import.meta.dirname, 'data.ts'), 'utf8')
    expect(await catalogText(catalogDate)).toBe(file)
  })

  test('costs are those that genai-prices calculates', async () => {
    const { calcPrice } = await peers.load<{
      calcPrice(usage: object, id: string, options: object): { total_price: number } | null
    }>('@pydantic/genai-prices')
    let compared = 0
    for (const [key, { prices }] of Object.entries(modelCatalog)) {
      const [provider, ...rest] = key.split('/')
      if (!prices || !['anthropic', 'openai', 'google'].includes(provider!)) continue
      for (const inputTokens of [1000, 500_000]) {
        const told = calcPrice({ input_tokens: inputTokens, output_tokens: 100 }, rest.join('/'), {
          providerId: provider,
          timestamp: new Date(`${catalogDate}T12:00:00Z`),
        })
        const usage = { ...zeroUsage, inputTokens, outputTokens: 100 }
        expect([key, tokenCost(usage, prices).toFixed(9)]).toEqual([key, told?.total_price.toFixed(9)]) // prettier-ignore
        compared++
      }
    }
    expect(compared).toBeGreaterThan(200)
  })
})
