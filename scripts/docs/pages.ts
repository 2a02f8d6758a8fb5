import { existsSync, globSync, readdirSync, readFileSync, statSync } from 'node:fs'
import { basename, dirname, join, posix } from 'node:path'
import { rowTables } from '../../conformance/reporter/markdown.ts'
import { filesNamingRows } from '../../conformance/reporter/named-rows.ts'
import { loadSpecs } from '../../conformance/reporter/rows.ts'
import { findPackages, readJson, root } from '../workspace.ts'
import { frontMatter, headingsOf, linksOf, mapLinks } from './markdown.ts'

/** One page of the site. */
export interface Page {
  /** The file it is made from, relative to the repository; a generated page has the address it would have. */
  readonly source: string
  /** Its address on the site without ending: `guides/tools` is `guides/tools.html` and `guides/tools.md`. */
  readonly path: string
  readonly title: string
  readonly section: string
  /** Markdown, with links as they stand in the source. */
  readonly text: string
  readonly isSearched: boolean
}

/** One section of the navigation. */
export interface Section {
  readonly title: string
  /** Whether the navigation shows every page, or only the first. */
  readonly isListed: boolean
  readonly pages: readonly Page[]
}

interface SectionRule {
  readonly title: string
  /** Files or patterns; a page belongs to the first section that names it, a file by name before a pattern. */
  readonly pages: readonly string[]
  readonly isListed?: boolean
  readonly unsearched?: readonly string[]
}

/**
 * The pages of the site by section, as `docs/site/sections.json` orders them: in the order of its entries, and
 * within a pattern by `order` of the front matter, then by title. So a new Markdown file needs no entry.
 */
export function collectSections(generated: ReadonlyMap<string, string>): Section[] {
  const rules = readJson(join(root, 'docs/site/sections.json')) as readonly SectionRule[]
  const named = new Set(rules.flatMap(({ pages }) => pages.filter((page) => !page.includes('*'))))
  const taken = new Set<string>()
  const all = new Map(generated)
  const decisions = decisionIndex()
  if (!all.has(decisions.source)) all.set(decisions.source, decisions.text)
  const filesOf = (pattern: string): string[] => {
    if (!pattern.includes('*'))
      return all.has(pattern) || existsSync(join(root, pattern)) ? [pattern] : []
    const match = [...all.keys()].filter((path) => posix.matchesGlob(path, pattern))
    const files = globSync(pattern, { cwd: root }).map((path) => path.replaceAll('\\', '/'))
    return [...match, ...files].filter((path) => !named.has(path) && isPage(path))
  }
  return rules
    .map(({ title: section, pages, isListed = true, unsearched = [] }) => ({
      title: section,
      isListed,
      pages: pages.flatMap((pattern) =>
        filesOf(pattern)
          .filter((source) => !taken.has(source))
          .map((source) => {
            taken.add(source)
            const text = all.get(source) ?? readFileSync(join(root, source), 'utf8')
            const number = /^examples\/(\d+)-/.exec(source)?.[1]
            const order = number === undefined ? frontMatter(text).order : Number(number)
            return { order: order ?? 1000, page: pageOf(source, text) }
          })
          .toSorted((a, b) => a.order - b.order || a.page.title.localeCompare(b.page.title, 'en'))
          .map(({ page }) => ({ ...page, section, isSearched: !unsearched.includes(page.source) })),
      ),
    }))
    .filter(({ pages }) => pages.length > 0)
}

function isPage(path: string): boolean {
  return path.endsWith('.md') || /^examples\/\d+-[\w-]+\.ts$/.test(path)
}

function pageOf(source: string, file: string): Omit<Page, 'section' | 'isSearched'> {
  const { title, text } = source.endsWith('.ts')
    ? { title: undefined, text: exampleText(source, file) }
    : frontMatter(file.replaceAll(/^<!--.*-->\n+/gm, ''))
  const own = title ?? headingsOf(text).find(({ level }) => level === 1)?.text ?? basename(source)
  return { source, path: addressOf(source), title: own, text }
}

/** Where a source is on the site. */
function addressOf(source: string): string {
  const bare = source.replace(/\.(?:md|ts)$/, '')
  if (bare.startsWith('docs/decisions/README')) return 'decisions/index'
  if (bare.startsWith('docs/')) return bare.slice('docs/'.length)
  if (/^(?:packages|examples)\/[\w-]+\/README$/.test(bare)) return dirname(bare)
  if (bare === 'examples/README') return 'examples/index'
  if (bare.endsWith('/README')) return `project/${dirname(bare)}`
  return bare.includes('/') ? bare : `project/${bare.toLowerCase()}`
}

/** An example as a page: what its first comment says, then the program. */
function exampleText(source: string, file: string): string {
  const comment = /^\/\*\*\n([\s\S]*?)\n \*\//.exec(file)?.[1] ?? ''
  const about = comment.replaceAll(/^ \* ?/gm, '')
  const name = basename(source, '.ts')
  const [number = '', ...words] = name.split('-')
  const title = exampleTitles().get(basename(source)) ?? words.join(' ')
  const code = file
    .slice(file.indexOf('*/') + 2)
    .replaceAll(/^ *\/\/ #(?:end)?region.*\n/gm, '')
    .trim()
  return `# ${title.replace(/^./, (letter) => letter.toUpperCase())} (example ${number})\n\n${about}\n\nThe program, \`${source}\`; \`npm run examples -- ${name}\` runs it:\n\n\`\`\`ts\n${code}\n\`\`\`\n`
}

/** What the README of the examples says that each of them does, by file. */
function exampleTitles(): ReadonlyMap<string, string> {
  const page = readFileSync(join(root, 'examples/README.md'), 'utf8')
  return new Map(linksOf(page).map(({ href, text }) => [href, text]))
}

/** The folder of definitions that `npm start` serves, as one page. */
export function agentsFolderPage(): [source: string, text: string] {
  const files = readdirSync(join(root, 'examples/agents'), { recursive: true, encoding: 'utf8' })
    .map((file) => file.replaceAll('\\', '/'))
    .filter((file) => file.endsWith('.ts') && !file.endsWith('.test.ts'))
    .toSorted()
  const listed = files.map(
    (file) =>
      `## ${file}\n\n\`\`\`ts\n${readFileSync(join(root, 'examples/agents', file), 'utf8').trim()}\n\`\`\`\n`,
  )
  const intro =
    '# A folder of agents\n\nThe definitions that `npm start` serves: one file per agent, prompt and tool, found by the folder they stand in. `scripts/` holds what the scripted model says where there is no key.\n'
  return ['examples/agents.md', `${intro}\n${listed.join('\n')}`]
}

/** How requirements are proved, followed by every requirement with the tests that name it. */
export function conformancePage(): [source: string, text: string] {
  const source = 'conformance/README.md'
  const files = filesNamingRows(root)
  const tables = rowTables(loadSpecs(), 'tests', (id) => files.get(id), { linkPrefix: '../' })
  const page = readFileSync(join(root, source), 'utf8')
  return [source, `${page}\n# The rows and the tests that name them\n\n${tables}`]
}

function decisionIndex(): { readonly source: string; readonly text: string } {
  const rows = readdirSync(join(root, 'docs/decisions'))
    .filter((file) => /^\d{4}-.*\.md$/.test(file))
    .toSorted()
    .map((file) => {
      const text = readFileSync(join(root, 'docs/decisions', file), 'utf8')
      return `- [${headingsOf(text)[0]?.text ?? file}](${file})`
    })
  return {
    source: 'docs/decisions/README.md',
    text: `# Decisions\n\nWhat was chosen, why, and what was given up.\n\n${rows.join('\n')}\n`,
  }
}

export interface Written {
  readonly text: string
  /** Images that the page shows, relative to the repository. */
  readonly images: readonly string[]
}

/**
 * The text of a page with links as the site has them: to pages with the given ending, to images under `images/`.
 * A link to a file that is no page becomes its text; the site has no repository to lead to.
 */
export function withSiteLinks(
  page: Page,
  pages: ReadonlyMap<string, Page>,
  ending: '.html' | '.md',
): Written {
  const images: string[] = []
  const up = (to: string): string => posix.relative(posix.dirname(page.path), to) || to
  const text = mapLinks(page.text, ({ isImage, href }) => {
    if (/^[a-z][a-z+.-]*:/i.test(href)) return href
    const [file = '', anchor] = href.split('#')
    const source = file === '' ? page.source : posix.join(posix.dirname(page.source), file)
    if (isImage) {
      images.push(source)
      return up(`images/${basename(source)}`)
    }
    const target = pages.get(source.replace(/\/$/, ''))
    if (!target) return undefined
    const id = anchor === undefined ? undefined : anchorOn(target, decodeURIComponent(anchor))
    const address = target === page && id !== undefined ? '' : up(`${target.path}${ending}`)
    return id === undefined ? address : `${address}#${id}`
  })
  return { text, images }
}

function anchorOn(page: Page, anchor: string): string {
  const headings = headingsOf(page.text)
  const wanted = anchor.toLowerCase()
  return (
    headings.find(({ id }) => id === anchor)?.id ??
    headings.find(({ slug }) => slug === wanted)?.id ??
    anchor
  )
}

/** Pages by every name that a link may use: the file, and the folder that a README or index describes. */
export function pagesByLink(sections: readonly Section[]): Map<string, Page> {
  const found = new Map<string, Page>()
  for (const page of sections.flatMap(({ pages }) => pages)) {
    found.set(page.source, page)
    if (page.source.endsWith('/README.md')) found.set(dirname(page.source), page)
  }
  const home = found.get('docs/index.md')
  if (home) {
    found.set('README.md', home)
    found.set('docs', home)
  }
  const folder = found.get('examples/agents.md')
  if (folder) found.set('examples/agents', folder)
  return found
}

/** Package folders whose reference and bundle are made. */
export function documentedPackages(): ReturnType<typeof findPackages> {
  return findPackages().filter(
    ({ folder, manifest }) =>
      manifest.private !== true &&
      existsSync(join(folder, 'README.md')) &&
      statSync(join(folder, 'README.md')).size > 0,
  )
}
