import { cpSync, globSync, mkdirSync, mkdtempSync, readFileSync, rmSync } from 'node:fs'
import { join, posix } from 'node:path'
import { pathToFileURL } from 'node:url'
import { beforeAll, describe, expect, test } from 'vitest'
import { buildDocs, builtDocs } from '../../../scripts/docs/build.ts'
import { MAX_BUNDLE_BYTES } from '../../../scripts/docs/llms.ts'
import { linksOf } from '../../../scripts/docs/markdown.ts'
import { publicNames } from '../../../scripts/source/public-names.ts'
import { peersOf } from '../../../scripts/peers.ts'
import { root } from '../../../scripts/workspace.ts'
import { studioFiles, type StudioPage } from '../src/index.ts'
import { violations, withBrowser, withStudio } from './studio-kit.ts'

const exported = publicNames()

// What the site is made with is installed by `npm test`; where npm could not, it says so and this is skipped.
const isInstalled = peersOf('docs').isInstalled

/** Copies what serves the page and the documentation into a clone without a built site. */
async function freshClone(
  { hasPages, hasSources = false }: { readonly hasPages: boolean; readonly hasSources?: boolean },
  work: (files: StudioPage) => void | Promise<void>,
): Promise<void> {
  mkdirSync(join(root, '.tmp'), { recursive: true })
  const clone = mkdtempSync(join(root, '.tmp', 'skein-docs-'))
  const source = join(clone, 'packages/studio/src')
  mkdirSync(source, { recursive: true })
  const own = join(import.meta.dirname, '..')
  for (const file of ['files.ts', 'plain-docs.ts'])
    cpSync(join(own, 'src', file), join(source, file))
  if (hasSources) {
    cpSync(join(own, 'src'), source, { recursive: true })
    for (const file of ['package.json', 'vite.config.ts'])
      cpSync(join(own, file), join(clone, 'packages/studio', file))
  }
  if (hasPages) {
    cpSync(join(root, 'docs'), join(clone, 'docs'), { recursive: true })
    cpSync(join(root, 'README.md'), join(clone, 'README.md'))
  }
  try {
    const { studioFiles: files } = (await import(pathToFileURL(join(source, 'files.ts')).href)) as {
      studioFiles: () => StudioPage
    }
    await work(files())
  } finally {
    rmSync(clone, { recursive: true })
  }
}

test('a clone without the built site shows its Markdown files, with a way back and links that lead on', async () => {
  await freshClone({ hasPages: true }, (files) => {
    const text = (path: string): string => Buffer.from(files.get(path)!.body).toString()
    expect(text('docs/')).toContain('<a href="../">← Studio</a>')
    expect(text('docs/plain.css')).toContain('color-scheme: light dark')
    expect(text('docs/guides/approvals.html')).toContain('<a href="../../">← Studio</a>')
    expect(text('docs/guides/approvals.html')).toContain('href="../first-five-minutes.html"')
    for (const [, link] of text('docs/README.html').matchAll(/href="([^"#:]+\.html)"/g))
      expect(files.get(posix.join('docs', link!)), link).toBeDefined()
    for (const path of ['../README.html', 'repo/../README.html', 'nothing.html', 'index.md'])
      expect(files.get(`docs/${path}`), path).toBeUndefined()
  })
})

test('an installation without documentation says how to build it, and gives nothing else', async () => {
  await freshClone({ hasPages: false }, (files) => {
    const page = files.get('docs/')
    expect(page?.type).toMatch(/^text\/html/)
    expect(Buffer.from(page!.body).toString()).toContain('npm run docs')
    expect(Buffer.from(page!.body).toString()).toContain('Back to Studio')
    expect(files.get('docs/errors.html')).toBeUndefined()
  })
})

describe('the first load in a clone', () => {
  withBrowser()

  test('says that Studio is being built, and shows Studio as soon as it is', async () => {
    await freshClone({ hasPages: false, hasSources: true }, async (studio) => {
      await withStudio({ serve: { studio } }, async ({ open }) => {
        const page = await open('/threads/none?view=tree')
        await page.getByRole('heading', { name: 'Skein Studio' }).waitFor()
        await page
          .getByRole('status')
          .getByText(/^Building the page, once/)
          .waitFor()
        // It has a style, from an address that the policy of the page allows. It loads again while it is looked at.
        const font = (): Promise<string> =>
          page.evaluate(() => getComputedStyle(document.body).fontFamily).catch(() => '')
        await expect.poll(font).toContain('system-ui')
        await page.getByText('There is no such thread.').waitFor({ timeout: 60_000 })
      })
    })
  }, 90_000)
})

/** What people look for, and the page that must be among the first two. */
const QUERIES: Readonly<Record<string, string>> = {
  useChat: 'chat',
  'structured output': 'structured-output',
  streaming: 'guides/streaming',
  'mcp server': 'guides/mcp-and-a2a',
  langgraph: 'migrate/langgraph',
  memory: 'guides/memory',
  testing: 'guides/testing',
  'next.js': 'examples/next-app',
  'sub agent': 'guides/sub-agents',
  'rate limit': 'examples/22-route-and-limit',
  postgres: 'packages/postgres',
  cost: 'guides/costs-and-budgets',
  zod: 'guides/tools',
  retry: 'packages/ai',
  openai: 'guides/vendors',
  image: 'packages/ai',
  'api key': 'http',
  deploy: 'deploy',
  rag: 'guides/retrieval',
  RAG: 'guides/retrieval',
  vector: 'guides/retrieval',
  'vector store': 'guides/retrieval',
  embeddings: 'guides/retrieval',
  'multi-tenant': 'guides/auth-and-tenants',
  'human in the loop': 'guides/approvals',
  evals: 'guides/testing',
  vitest: 'guides/testing',
  upgrade: 'upgrade',
  upgrading: 'upgrade',
  auth: 'guides/auth-and-tenants',
  authentication: 'guides/auth-and-tenants',
  'sign in': 'chat',
  tracing: 'telemetry',
  docker: 'deploy',
  'getting started': 'first-five-minutes',
  quickstart: 'first-five-minutes',
  guardrails: 'guides/approvals',
  cli: 'packages/cli',
  sse: 'guides/streaming',
  timeout: 'guides/tools',
}

describe.skipIf(!isInstalled)('the documentation', () => {
  withBrowser()
  beforeAll(async () => {
    expect(await buildDocs()).toMatchObject({ pages: expect.any(Number) })
  }, 120_000)

  test('every link of every page leads to a page, an anchor or a picture, and nothing is inline', () => {
    const pages = globSync('**/*.html', { cwd: builtDocs }).map((file) =>
      file.replaceAll('\\', '/'),
    )
    expect(pages.length).toBeGreaterThan(150)
    const texts = new Map(pages.map((file) => [file, readFileSync(join(builtDocs, file), 'utf8')]))
    const ids = new Map(
      pages.map((file) => [
        file,
        new Set([...texts.get(file)!.matchAll(/ id="([^"]+)"/g)].map(([, id]) => id)),
      ]),
    )
    const files = new Set(
      globSync('**/*.*', { cwd: builtDocs }).map((file) => file.replaceAll('\\', '/')),
    )
    const problems = pages.flatMap((page) => {
      const html = texts.get(page)!
      const inline = /<script(?![^>]* src=)|<style|[\s"]style="|[\s"]on[a-z]+="/.test(html)
      const links = [...html.matchAll(/ (?:href|src)="([^"]+)"/g)].map(
        ([, address = '']) => address,
      )
      const wrong = links.filter((address) => {
        if (/^(?:https|mailto):/.test(address) || address.endsWith('../')) return false
        const [path = '', anchor] = decodeURIComponent(address).split('#')
        const target = path === '' ? page : posix.join(posix.dirname(page), path)
        if (!files.has(target)) return true
        return anchor !== undefined && ids.get(target)?.has(anchor) === false
      })
      return [
        ...(inline ? [`${page} has something inline`] : []),
        ...wrong.map((to) => `${page}: ${to}`),
      ]
    })
    expect(problems).toEqual([])
  })

  test('what an example prints is shown as code', () => {
    const page = readFileSync(join(builtDocs, 'examples/97-two-agents.html'), 'utf8')
    expect(page).toContain('<code>The loom book is on shelf 4.\n')
    expect(page).toContain('<span class="hljs-keyword">import</span>')
  })

  test('a part of a program opens as the whole program', () => {
    const page = readFileSync(join(builtDocs, 'guides/approvals.html'), 'utf8')
    const programs = [
      ...page.matchAll(/<details class="program"><summary>([^<]+)<([^]*?)<\/details>/g),
    ]
    expect(programs.map(([, summary]) => summary)).toContain(
      'Whole program: examples/82-approved-email.ts',
    )
    for (const [, , code] of programs) {
      expect(code).toContain('<span class="hljs-keyword">import</span>')
      expect(code).not.toContain('#region')
    }
  })

  test('what people type finds the page that explains it, before the names that it mentions', async () => {
    interface Hit {
      readonly url: string
    }
    interface Search {
      readonly searchOptions: object
      search(index: object, text: string): readonly Hit[]
    }
    const { default: MiniSearch } = await peersOf('docs').load<{
      default: { loadJS(index: object, options: object): object }
    }>('minisearch')
    const code = pathToFileURL(join(root, 'docs/site/search-options.js')).href
    const { search, searchOptions } = (await import(code)) as Search
    const [file] = globSync('assets/search-*.json', { cwd: builtDocs })
    const text = readFileSync(join(builtDocs, file!), 'utf8')
    const index = MiniSearch.loadJS(JSON.parse(text) as object, searchOptions)
    const pagesOf = (query: string): string[] => [
      ...new Set(search(index, query).map(({ url }) => url.replace(/\.html.*/, ''))),
    ]
    const first = Object.fromEntries(
      Object.keys(QUERIES).map((query) => [query, pagesOf(query).slice(0, 2)]),
    )
    for (const [query, page] of Object.entries(QUERIES))
      expect.soft(first[query], query).toContain(page)
    // No reference, change log or error code is above an explanation.
    for (const [query, pages] of Object.entries(first))
      expect.soft(pages[0], query).not.toMatch(/^(?:reference|project|errors|decisions)/)
    // A name in code is found where it is described.
    expect(search(index, 'defineAgent')[0]?.url).toBe('reference/runtime.html#defineAgent')
    expect(search(index, 'THREAD_BUSY')[0]?.url).toBe('errors.html#THREAD_BUSY')
    expect(search(index, 'how do I use the')).toEqual(search(index, ''))
  })

  test('every page has a Markdown twin whose links lead to Markdown, and llms.txt names all of them', () => {
    const twins = globSync('**/*.md', { cwd: builtDocs }).map((file) => file.replaceAll('\\', '/'))
    const pages = globSync('**/*.html', { cwd: builtDocs }).map((file) =>
      file.replaceAll('\\', '/'),
    )
    expect(twins.toSorted()).toEqual(pages.map((page) => page.replace(/html$/, 'md')).toSorted())
    const known = new Set([...twins, ...globSync('{images/*,*.txt}', { cwd: builtDocs })])
    const strays = [...twins, ...globSync('*.txt', { cwd: builtDocs })].flatMap((file) =>
      linksOf(readFileSync(join(builtDocs, file), 'utf8'))
        .map(({ href }) => href.split('#')[0]!)
        .filter((href) => href !== '' && !/^(?:https|mailto):/.test(href))
        .filter((href) => !known.has(posix.join(posix.dirname(file), href)))
        .map((href) => `${file}: ${href}`),
    )
    expect(strays).toEqual([])
    const index = readFileSync(join(builtDocs, 'llms.txt'), 'utf8')
    const named = new Set(linksOf(index).map(({ href }) => href))
    expect(twins.filter((twin) => !named.has(twin))).toEqual([])
    expect(index).toMatch(/^# Skein\n\n> /)
    expect(Buffer.byteLength(index)).toBeLessThan(40_000)
  })

  test('a bundle per package stays below 20,000 tokens, and holds the manual and every name', () => {
    const bundles = globSync('llms-*.txt', { cwd: builtDocs })
    expect(bundles.length).toBeGreaterThanOrEqual(10)
    for (const file of bundles) {
      const text = readFileSync(join(builtDocs, file), 'utf8')
      expect(Buffer.byteLength(text), file).toBeLessThanOrEqual(MAX_BUNDLE_BYTES)
      const name = `@skein/${file.slice('llms-'.length, -'.txt'.length)}`
      const missing = exported
        .filter((one) => one.package === name && !text.includes(one.name))
        .map((one) => one.name)
      expect(missing, file).toEqual([])
    }
  })

  test('the reference has every public name of every entry, with a sentence', () => {
    const page = (name: string): string =>
      readFileSync(join(builtDocs, 'reference', `${name.replace('@skein/', '')}.md`), 'utf8')
    const names = exported.filter((one) => one.package.startsWith('@skein/'))
    expect(names.length).toBeGreaterThan(800)
    const missing = names.filter(({ package: name, entry, name: own }) => {
      const [, of = ''] = page(name).split(`\n## ${entry}\n`)
      return !of.split('\n## ')[0]!.includes(`\n### \`${own}\`\n\n`)
    })
    expect(missing.map(({ entry, name }) => `${entry} ${name}`)).toEqual([])
    const silent = [...new Set(names.map((one) => one.package))].flatMap((name) =>
      [...page(name).matchAll(/^### (`\w+`)\n\n```/gm)].map(([, own]) => `${name} ${own}`),
    )
    expect(silent).toEqual([])
  })

  test('behind a prefix, offline: Studio leads there, search finds an error, nothing leaves the origin', async () => {
    await withStudio({ serve: { prefix: '/team' } }, async ({ open, url }) => {
      const plain = await fetch(`${new URL(url).origin}/team/studio/docs`, { redirect: 'manual' })
      expect([plain.status, plain.headers.get('location')]).toEqual([302, 'docs/'])
      const page = await open('/', { prefix: '/team' })
      await page.getByRole('link', { name: 'Docs' }).click()
      await page.getByRole('heading', { level: 1, name: 'Skein' }).waitFor()
      expect(new URL(page.url()).pathname).toBe('/team/studio/docs/')

      await page.keyboard.press('/')
      await page.getByRole('combobox').fill('THREAD_BUSY')
      await page.getByRole('option').first().waitFor()
      await page.keyboard.press('Enter')
      await page.waitForURL('**/errors.html#THREAD_BUSY')
      expect(await page.locator('#THREAD_BUSY').isVisible()).toBe(true)

      await page.keyboard.press('Control+k')
      await page.getByRole('combobox').fill('deploy docker')
      await page
        .getByRole('option', { name: /Deploying/ })
        .first()
        .click()
      await page.waitForURL('**/deploy.html*')
      await page.getByRole('link', { name: 'Studio', exact: true }).first().click()
      await page.waitForURL('**/team/studio/')
    })
  })

  test('no accessibility problem in either theme, wide or narrow', async () => {
    await withStudio({}, async ({ open }) => {
      for (const [path, theme, width] of [
        ['/docs/', 'light', 1360],
        ['/docs/guides/approval-llm.html', 'dark', 1360],
        ['/docs/first-five-minutes.html', 'light', 360],
      ] as const) {
        const page = await open(path, { theme, width })
        expect(await violations(page), path).toEqual([])
        // Text and code wrap or scroll by themselves; the page does not.
        const isWide = await page.evaluate(() => document.documentElement.scrollWidth > innerWidth)
        expect(isWide, `${path} scrolls sideways`).toBe(false)
      }
      const page = await open('/docs/')
      await page.evaluate(() => document.querySelector('main')!.append(new Image(20, 20)))
      expect(await violations(page), 'a picture without words').toEqual([
        expect.stringMatching(/^image-alt: /),
      ])
    })
  })

  test('no path leads out of the folder of the docs', () => {
    const files = studioFiles()
    for (const path of [
      '../package.json',
      '..%2fpackage.json',
      'x/../../page/index.html',
      '.',
      'assets',
    ])
      expect(files.get(`docs/${path}`), path).toBeUndefined()
    expect(files.get('docs/llms.txt')?.type).toBe('text/plain; charset=utf-8')
    expect(files.get('docs/index.md')?.type).toBe('text/markdown; charset=utf-8')
  })
})
