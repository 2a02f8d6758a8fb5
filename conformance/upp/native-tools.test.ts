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
      expect(body).toEqual({
        ...expected,
        tools: [...(expected['tools'] as JsonObject[]), native.tool],
      })
    },
  )

  test.each(cases)('UPP-123 $name: native tools alone', async ({ vendor, native }) => {
    const params = { tools: [native.tool] }
    const { body } = await askVendor(vendor, 'text', { options: { params } })
    expect(body).toEqual({ ...(vendor.bodies.text as JsonObject), tools: [native.tool] })
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
