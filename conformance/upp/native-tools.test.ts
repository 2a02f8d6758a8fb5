import type { JsonObject } from '@skein/base'
import { describe, expect, test } from 'vitest'
import { weather } from './cases/requests.ts'
import { askVendor, ways } from './support/ask-vendor.ts'
import { vendorCases } from './vendors.ts'

const cases = vendorCases.flatMap((vendor) =>
  vendor.native ? [{ name: vendor.name, vendor, native: vendor.native }] : [],
)

describe('UPP §11.4', () => {
  test.each(cases)(
    'UPP-123 $name: native tools are merged with function tools',
    async ({ vendor, native }) => {
      const params = { tools: [native.tool] }
      const { body } = await askVendor(vendor, 'tools', { options: { params } })
      const expected = vendor.bodies.tools as JsonObject
      const { holder } = native
      const list = (holder ? (expected[holder] as JsonObject) : expected)['tools'] as JsonObject[]
      const tools = [...list, native.tool]
      expect(body).toEqual({ ...expected, ...(holder ? { [holder]: { tools } } : { tools }) })
    },
  )

  test.each(cases)('UPP-123 $name: native tools alone', async ({ vendor, native }) => {
    const params = { tools: [native.tool] }
    const { body } = await askVendor(vendor, 'text', { options: { params } })
    const { holder } = native
    const tools = [native.tool]
    const added = holder ? { [holder]: { tools } } : { tools }
    expect(body).toEqual({ ...(vendor.bodies.text as JsonObject), ...added })
  })

  test.each(cases)('UPP-123 $name: what a native tool gave is kept', async ({ vendor, native }) => {
    for (const way of ways) {
      const options = { params: { tools: [native.tool] }, tools: [weather] }
      const { turn } = await askVendor(vendor, 'text', { way, answers: native, options })
      expect(turn.toolExecutions).toEqual([])
      native.check(turn)
    }
  })
})
