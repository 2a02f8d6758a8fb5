import { createHash } from 'node:crypto'
import {
  cpSync,
  globSync,
  mkdirSync,
  readFileSync,
  renameSync,
  rmSync,
  writeFileSync,
} from 'node:fs'
import { dirname, join, posix } from 'node:path'
import { pathToFileURL } from 'node:url'
import * as esbuild from 'esbuild'
import { format } from 'prettier'
import { installPeers, peersOf } from '../peers.ts'
import { root, run } from '../workspace.ts'
import { writePages, type Assets } from './html.ts'
import { bundleTexts, indexText, type Bundles } from './llms.ts'
import { headingsOf, plainText } from './markdown.ts'
import {
  agentsFolderPage,
  collectSections,
  conformancePage,
  documentedPackages,
  pagesByLink,
  withSiteLinks,
  type Page,
  type Section,
} from './pages.ts'
import { entriesOf, referencePage } from './reference.ts'

/** What the site is made with; installed on demand. */
const siteFolder = 'docs/site'

/** Where the site is: in the package that serves it. */
export const builtDocs: string = join(root, 'packages/studio/dist/docs')

export interface BuiltDocs {
  readonly pages: number
  readonly bytes: number
}

/** Builds the site. Returns what npm printed if its generator could not be installed. */
export async function buildDocs(target: string = builtDocs): Promise<BuiltDocs | string> {
  const failure = await installPeers('docs')
  if (failure !== undefined) return failure
  const packages = documentedPackages()
  const emitted = await run('tsc', ['-b', ...packages.map(({ folder }) => folder)], { quiet: true })
  if (emitted.code !== 0) throw new Error(`tsc fails:\n${emitted.output}`)
  const references = await Promise.all(
    packages.map(async (each) => {
      const entries = entriesOf(each)
      const short = each.folder.split(/[\\/]/).at(-1)!
      const text = await format(referencePage(each.name, entries), {
        parser: 'markdown',
        semi: false,
        singleQuote: true,
        printWidth: 96,
      })
      return { short, entries, text }
    }),
  )
  const generated = new Map<string, string>([
    agentsFolderPage(),
    conformancePage(),
    ...references.map(({ short, text }): [string, string] => [`reference/${short}.md`, text]),
  ])
  const sections = withContents(collectSections(generated))
  const paths = sections.flatMap(({ pages }) => pages.map(({ path }) => path))
  const twice = paths.find((path, at) => paths.indexOf(path) !== at)
  if (twice !== undefined) throw new Error(`Two pages have the address ${twice}.`)
  const work = join(root, '.cache', `docs-${process.pid}`)
  rmSync(work, { recursive: true, force: true })
  const out = join(work, 'out')
  mkdirSync(out, { recursive: true })
  const bundles = bundleTexts(sections, references)
  writeTwins(sections, out, bundles)
  const assets = await writeAssets(out, sections)
  await writePages(sections, peersOf('docs'), { source: join(work, 'src'), out, assets })
  rmSync(target, { recursive: true, force: true })
  mkdirSync(dirname(target), { recursive: true })
  renameSync(out, target)
  rmSync(work, { recursive: true, force: true })
  const files = globSync('**/*.*', { cwd: target })
  return {
    pages: paths.length,
    bytes: files.reduce((sum, file) => sum + readFileSync(join(target, file)).length, 0),
  }
}

/** The first page ends with all pages, so that it is an index whatever is added. */
function withContents(sections: readonly Section[]): Section[] {
  const lists = sections.map(({ title, pages, isListed }) => {
    const shown = isListed ? pages : pages.slice(0, 1)
    const items = shown
      .filter(({ source }) => source !== 'docs/index.md')
      .map((page) => `- [${page.title}](${posix.relative('docs', page.source)})`)
    return `## ${title}\n\n${items.join('\n')}\n`
  })
  const add = (page: Page): Page =>
    page.source === 'docs/index.md' ? { ...page, text: `${page.text}\n${lists.join('\n')}` } : page
  return sections.map((section) => ({ ...section, pages: section.pages.map(add) }))
}

/** Each page as Markdown next to its HTML, the images, and the files for coding agents. */
function writeTwins(sections: readonly Section[], out: string, bundles: Bundles): void {
  const pages = pagesByLink(sections)
  for (const page of sections.flatMap((section) => section.pages)) {
    const { text, images } = withSiteLinks(page, pages, '.md')
    write(join(out, `${page.path}.md`), text)
    for (const image of images)
      cpSync(join(root, image), join(out, 'images', image.split('/').at(-1)!))
  }
  write(join(out, 'llms.txt'), indexText(sections, bundles))
  for (const [name, text] of bundles) write(join(out, name), text)
}

function write(file: string, text: string | Uint8Array): void {
  mkdirSync(dirname(file), { recursive: true })
  writeFileSync(file, text)
}

/** Style, scripts, icon and index. A name contains the hash of its content, so browsers may keep the file. */
async function writeAssets(out: string, sections: readonly Section[]): Promise<Assets> {
  const studio = join(root, 'packages/studio/src')
  const site = join(root, siteFolder)
  const named = (name: string, content: string): string => {
    const hash = createHash('sha256').update(content).digest('hex').slice(0, 8)
    const path = `assets/${name.replace('.', `-${hash}.`)}`
    write(join(out, path), content)
    return path
  }
  const style = await esbuild.transform(
    `${readFileSync(join(studio, 'styles/tokens.css'), 'utf8')}\n${readFileSync(join(site, 'site.css'), 'utf8')}`,
    { loader: 'css', minify: true },
  )
  const bundled = await esbuild.build({
    entryPoints: [join(site, 'page.js')],
    bundle: true,
    minify: true,
    format: 'esm',
    target: 'es2023',
    write: false,
    nodePaths: [join(peersOf('docs').folder, 'node_modules')],
    logLevel: 'silent',
  })
  return {
    style: named('site.css', style.code),
    script: named('page.js', bundled.outputFiles[0]!.text),
    theme: named('theme.js', readFileSync(join(studio, 'theme.js'), 'utf8')),
    icon: named('icon.svg', readFileSync(join(studio, 'styles/icon.svg'), 'utf8')),
    search: named('search.json', JSON.stringify(await searchIndex(sections))),
  }
}

interface MiniSearchModule {
  readonly default: new (options: object) => {
    addAll(documents: readonly object[]): void
    toJSON(): unknown
  }
}

/** One document for each heading of each page. */
async function searchIndex(sections: readonly Section[]): Promise<unknown> {
  const { default: MiniSearch } = await peersOf('docs').load<MiniSearchModule>('minisearch')
  const options = join(root, siteFolder, 'search-options.js')
  const { searchOptions } = (await import(pathToFileURL(options).href)) as { searchOptions: object }
  const index = new MiniSearch(searchOptions)
  const documents = sections
    .flatMap(({ pages }) => pages)
    .filter(({ isSearched }) => isSearched)
    .flatMap(({ path, title: page, text }) => {
      const headings = headingsOf(text).filter(({ level }) => level <= 3)
      return headings.map((heading, number) => ({
        url: `${path}.html${heading.level === 1 ? '' : `#${heading.id}`}`,
        title: heading.level === 1 ? page : heading.text,
        page,
        text: searchedText(path, text.slice(heading.end, headings[number + 1]?.start)),
      }))
    })
  index.addAll(documents.map((document, id) => ({ id, ...document })))
  return index.toJSON()
}

/** Declarations and whole programs would be most of the index; their names are in headings and sentences. */
function searchedText(path: string, text: string): string {
  const isCode = /^(?:reference|examples)\//.test(path)
  return plainText(isCode ? text.replaceAll(/^```[\s\S]*?^```$/gm, '') : text)
}
