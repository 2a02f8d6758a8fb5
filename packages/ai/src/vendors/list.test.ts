import { readFileSync } from 'node:fs'
import { join } from 'node:path'
import { afterEach, expect, test, vi } from 'vitest'
import { llm, type Provider } from '../index.ts'
import { vendors as vendorsUnderTest } from '../../test/testing/vendors.ts'
import type { openaiCompatible } from './openai-compatible.ts'
import { vendors } from './list.ts'

const folder = join(import.meta.dirname, '..', '..')

function readJson<T>(...path: string[]): T {
  return JSON.parse(readFileSync(join(folder, ...path), 'utf8')) as T
}

type MakeProvider = typeof openaiCompatible

/** The provider that a page exports; a page that makes providers is given the facts of its row. */
async function providerOf({ name, entry }: (typeof vendors)[number]): Promise<Provider> {
  const page = (await import(join(import.meta.dirname, `${entry}.ts`))) as {
    default: Provider | MakeProvider
  }
  const made = page.default
  return 'handlers' in made ? made : made({ name, baseUrl: 'http://127.0.0.1:1/v1' })
}

afterEach(() => {
  vi.unstubAllEnvs()
})

test('the list has a row for every exported page, and no other', () => {
  const { exports } = readJson<{ exports: Record<string, { '@skein/source'?: string }> }>(
    'package.json',
  )
  const pages = Object.entries(exports).filter(
    ([name, target]) =>
      name !== './vendors' && target['@skein/source']?.startsWith('./src/vendors/'),
  )
  expect(pages.map(([name]) => name.slice(2)).toSorted()).toEqual(
    vendors.map(({ entry }) => entry).toSorted(),
  )
})

test('every vendor is among those that the tests of all vendors run', () => {
  const tested = new Set(vendorsUnderTest.map(({ name }) => name.split(' ')[0]))
  expect(vendors.filter(({ name }) => !tested.has(name))).toEqual([])
})

test.each(vendors)('$name: the page has this name, address and key', async (vendor) => {
  const provider = await providerOf(vendor)
  const isMade = vendor.entry === 'openai-compatible'
  expect(provider.name).toBe(vendor.name)

  vi.stubEnv('AWS_EC2_METADATA_DISABLED', 'true')
  vi.stubEnv('GCE_METADATA_HOST', '127.0.0.1:1')
  for (const { keyVariables } of vendors) for (const name of keyVariables) vi.stubEnv(name, '')
  const addresses: string[] = []
  const fetch = async (input: string): Promise<Response> => {
    addresses.push(input)
    return new Response('', { status: 400 })
  }
  const attempt = (apiKey?: string): Promise<unknown> =>
    llm({ model: provider('model'), config: { fetch, apiKey }, params: {} }).generate('hi')

  await expect(attempt('any')).rejects.toThrow()
  if (vendor.baseUrl !== undefined) expect(addresses[0]).toMatch(new RegExp(`^${vendor.baseUrl}/`))
  else if (!isMade) expect(addresses[0]).toContain('.invalid/')

  const withoutKey = await attempt().catch((error: unknown) => error)
  if (vendor.name === 'vertex')
    // It needs no key, but a place and credentials.
    expect(withoutKey).toMatchObject({ code: 'AUTHENTICATION_FAILED' })
  else if (vendor.keyVariables.length === 0)
    expect(withoutKey).not.toMatchObject({ code: 'AUTHENTICATION_FAILED' })
  else
    expect(withoutKey).toMatchObject({
      code: 'AUTHENTICATION_FAILED',
      hint: expect.stringMatching(
        vendor.name === 'bedrock'
          ? /^Set AWS_BEARER_TOKEN_BEDROCK, or AWS_ACCESS_KEY_ID and/
          : `^Set ${vendor.keyVariables.join(' or ')}, or pass config.apiKey.$`,
      ),
    })
})
