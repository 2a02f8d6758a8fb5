/** Every shipped vendor, found by looking: a page that is added is tested. */
import { readdirSync } from 'node:fs'
import { join } from 'node:path'
import type { Provider } from '@skein/ai'

const folder = join(import.meta.dirname, '../../../packages/ai/src/vendors')

export interface ShippedVendor {
  readonly name: string
  readonly provider: Provider
}

type Page = Readonly<Record<string, unknown>>

const pages = await Promise.all(
  readdirSync(folder)
    .filter((file) => file.endsWith('.ts') && !file.includes('.test'))
    .map(async (file) => ({ file, page: (await import(join(folder, file))) as Page })),
)

/** A vendor's page is one with a default export. */
export const vendors: readonly ShippedVendor[] = pages
  .filter(({ page }) => page['default'] !== undefined)
  .map(({ file, page }) => ({
    name: file.slice(0, -'.ts'.length),
    provider: providerOf(page['default']),
  }))

/** Some pages give a provider, others make one for an address. */
function providerOf(page: unknown): Provider {
  if (typeof page === 'function' && 'handlers' in page) return page as unknown as Provider
  const make = page as (options: object) => Provider
  return make({ name: 'somewhere', baseUrl: 'https://somewhere.test/v1' })
}

const of = (modality: 'llm' | 'embedding' | 'image'): readonly ShippedVendor[] =>
  vendors.filter(({ provider }) => provider.handlers[modality])

export const llmVendors: readonly ShippedVendor[] = of('llm')
export const embeddingVendors: readonly ShippedVendor[] = of('embedding')
export const imageVendors: readonly ShippedVendor[] = of('image')
