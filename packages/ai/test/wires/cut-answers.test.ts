/** Structured answers that a vendor cut off: whole data or an error, never other data. */
import { isUPPError, llm, NoRetry } from '@skein/ai'
import { says, stops, vendorServer, type ScriptPart } from '@skein/ai/testing'
import { isPlainObject, type JsonSchema } from '@skein/base'
import { describe, expect, test } from 'vitest'
import { vendors, type VendorUnderTest } from '../testing/vendors.ts'

/** A schema with whole data of it. */
const answers: Record<string, readonly [JsonSchema, unknown]> = {
  'a number': [{ type: 'number' }, 1234],
  'a fraction': [{ type: 'number' }, -1.25e-7],
  'a list of numbers': [{ type: 'array', items: { type: 'integer' } }, [12, 345]],
  'a text': [{ type: 'string' }, '12 } 34'],
  'a boolean': [{ type: 'boolean' }, true],
  'an object': [
    { type: 'object', properties: { a: { type: 'integer' } }, required: ['a'] },
    { a: 12 },
  ],
}

/** How the vendor was asked to answer. */
type Form = 'wrapped' | 'plain'

/** One vendor of each wire, and one that is told the schema in its prompt. */
const names = ['anthropic', 'openai responses', 'openai chat', 'google', 'ollama', 'deepseek']

async function ask(
  { model, name, prefix }: VendorUnderTest,
  structure: JsonSchema,
  step: (form: Form) => ScriptPart | readonly ScriptPart[],
): Promise<PromiseSettledResult<unknown>[]> {
  const isObject = 'properties' in structure
  const server = vendorServer(({ structure: sent }) => {
    const members = isPlainObject(sent?.['properties']) ? Object.keys(sent['properties']) : []
    const isWrapped = !isObject && (members.join() === 'value' || name === 'deepseek')
    return step(isWrapped ? 'wrapped' : 'plain')
  })
  const config = {
    fetch: server.fetch,
    baseUrl: `http://vendor.test${prefix}`,
    apiKey: 'sk-test',
    retryStrategy: new NoRetry(),
  }
  const talker = llm({ model, config, structure })
  return Promise.allSettled([talker.generate('x'), talker.stream('x').turn])
}

const textOf = (form: Form, data: unknown): string =>
  JSON.stringify(form === 'wrapped' ? { value: data } : data)

describe.each(vendors.filter(({ name }) => names.includes(name)))('$name', (vendor) => {
  test.each(Object.entries(answers))(
    'UPP-127 UPP-147 %s that was cut anywhere is whole or INVALID_RESPONSE',
    async (_, [structure, data]) => {
      const longest = textOf('wrapped', data).length
      for (let length = 0; length <= longest; length++) {
        const results = await ask(vendor, structure, (form) => [
          says(textOf(form, data).slice(0, length)),
          stops('max_tokens'),
        ])
        for (const result of results) {
          if (result.status === 'fulfilled') expect(result.value).toMatchObject({ data })
          else {
            const error: unknown = result.reason
            expect(isUPPError(error) && error.code, String(error)).toBe('INVALID_RESPONSE')
            expect(isUPPError(error) && error.turn?.stopReason).toBe('max_tokens')
          }
        }
      }
    },
  )

  test.each(Object.entries(answers))(
    'UPP-127 UPP-147 %s in a wrapper that was not closed is whole or INVALID_RESPONSE, whatever the reason',
    async (_, [structure, data]) => {
      for (let cut = 1; cut < 5; cut++) {
        let isWrapped = false
        const results = await ask(vendor, structure, (form) => {
          isWrapped = form === 'wrapped'
          return says(textOf(form, data).slice(0, isWrapped ? -cut : undefined))
        })
        for (const result of results)
          if (result.status === 'fulfilled') expect(result.value).toMatchObject({ data })
          else {
            expect(isWrapped).toBe(true)
            expect(result.reason).toMatchObject({ code: 'INVALID_RESPONSE' })
          }
      }
    },
  )

  test.each(Object.entries(answers))('UPP-124 UPP-147 %s that ended is data', async (_, answer) => {
    const [structure, data] = answer
    const results = await ask(vendor, structure, (form) => says(textOf(form, data)))
    for (const result of results)
      expect(result).toMatchObject({ status: 'fulfilled', value: { data } })
  })
})
