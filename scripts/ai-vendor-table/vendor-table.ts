import { join } from 'node:path'
import { pathToFileURL } from 'node:url'
import {
  isUPPError,
  type BoundLLMModel,
  type ImageCapabilities,
  type LLMCapabilities,
  type Provider,
} from '@skein/ai'
import { vendors } from '@skein/ai/vendors'
import { root } from '../workspace.ts'

/** The page that shows the table, between its two marks. */
export const page: string = join(root, 'packages', 'ai', 'README.md')
const startMark =
  '<!-- vendors:start (node --conditions=@skein/source scripts/ai-vendor-table.ts) -->'
const endMark = '<!-- vendors:end -->'

/** A page with the table between its marks. */
export function withTable(text: string, table: string): string {
  const start = text.indexOf(startMark)
  const end = text.indexOf(endMark)
  if (start < 0 || end < start) throw new Error(`The page has no "${startMark}" … "${endMark}".`)
  return `${text.slice(0, start + startMark.length)}\n\n${table}\n${text.slice(end)}`
}

/** Markdown made from what the vendor pages say: their handlers, formats and capabilities. */
export async function vendorTable(): Promise<string> {
  const pages = await Promise.all(findVendorPages().map(readVendor))
  const rows = [columns, ...pages.toSorted((a, b) => a.name.localeCompare(b.name)).map(toRow)]
  const widths = columns.map((_, column) => Math.max(...rows.map((row) => row[column]!.length)))
  const lines = rows.map((row) => line(row.map((cell, column) => cell.padEnd(widths[column]!))))
  lines.splice(1, 0, line(widths.map((width) => '-'.repeat(width))))
  return `${lines.join('\n')}\n`
}

function line(cells: readonly string[]): string {
  return `| ${cells.join(' | ')} |`
}

interface VendorPage {
  readonly name: string
  readonly file: string
}

/** The pages of the shipped vendors. */
function findVendorPages(): VendorPage[] {
  const folder = join(root, 'packages', 'ai', 'src', 'vendors')
  return vendors.map(({ entry }) => ({ name: entry, file: join(folder, `${entry}.ts`) }))
}

interface Vendor {
  readonly name: string
  /** What it speaks by default first, then what it can be asked to speak. */
  readonly formats: readonly string[]
  readonly llm: LLMCapabilities | undefined
  readonly hasEmbeddings: boolean
  readonly image: ImageCapabilities | undefined
}

/** Vendors without a choice of API ignore the option. */
type AnyProvider = Provider<{ readonly api?: string }>
type MakeProvider = (options: { name: string; baseUrl: string }) => AnyProvider

async function readVendor({ name, file }: VendorPage): Promise<Vendor> {
  const module = (await import(pathToFileURL(file).href)) as { default: AnyProvider | MakeProvider }
  const made = module.default
  const provider = 'handlers' in made ? made : made({ name, baseUrl: 'http://127.0.0.1:8000/v1' })
  const { llm, embedding, image } = provider.handlers
  const bound = [undefined, 'responses', 'chat', 'interactions'].flatMap((api): BoundLLMModel[] => {
    try {
      return llm ? [llm.bind(provider('model', api === undefined ? {} : { api }))] : []
    } catch (error) {
      if (isUPPError(error) && api !== undefined) return [] // an API of other vendors
      throw error
    }
  })
  return {
    name,
    formats: [...new Set(bound.flatMap(({ wire }) => wire ?? []))],
    llm: bound[0]?.capabilities,
    hasEmbeddings: embedding !== undefined,
    image: image?.bind(provider('model')).capabilities,
  }
}

const columns = [
  '`@skein/ai/…`',
  'format',
  'stream',
  'tools',
  'structure',
  'image in',
  'document in',
  'audio in',
  'video in',
  'embeddings',
  'images',
]

function toRow({ name, formats, llm, hasEmbeddings, image }: Vendor): string[] {
  const can = (capability: keyof LLMCapabilities): string => mark(llm?.[capability] === true)
  return [
    `\`${name}\``,
    formats.join(', ') || '–',
    can('streaming'),
    can('tools'),
    can('structuredOutput'),
    can('imageInput'),
    can('documentInput'),
    can('audioInput'),
    can('videoInput'),
    mark(hasEmbeddings),
    imageWords(image),
  ]
}

function mark(has: boolean): string {
  return has ? 'yes' : '–'
}

function imageWords(image: ImageCapabilities | undefined): string {
  if (!image) return '–'
  const words = (['generate', 'edit'] as const).filter((word) => image[word])
  return [...words, ...(image.streaming ? ['stream'] : [])].join(', ')
}
