import { expect, test } from 'vitest'
import { collectSections, pagesByLink, withSiteLinks } from './pages.ts'

const sections = collectSections(
  new Map([
    ['docs/guides/zebra.md', '---\ntitle: Zebras\norder: -1\n---\n\n# All about zebras\n'],
    [
      'docs/migrate/horse.md',
      '# From horses\n\n[z](../guides/zebra.md), [code](../errors.md#thread_busy), [a](../../packages/ai), [s](../../scripts/docs.ts)\n',
    ],
    ['docs/new-thing.md', '# A new thing\n'],
  ]),
)
const titlesOf = (section: string): string[] | undefined =>
  sections.find(({ title }) => title === section)?.pages.map(({ title }) => title)

test('a new Markdown file is in the navigation, by its front matter or its heading', () => {
  expect(titlesOf('Guides')?.[0]).toBe('Zebras')
  expect(titlesOf('Coming from')).toContain('From horses')
  expect(titlesOf('Facts')).toContain('A new thing')
})

test('every page is in one section, and has one address', () => {
  const pages = sections.flatMap((section) => section.pages)
  expect(new Set(pages.map(({ source }) => source)).size).toBe(pages.length)
  expect(new Set(pages.map(({ path }) => path)).size).toBe(pages.length)
})

test('links lead to the addresses of the site, and what the site does not have is text', () => {
  const pages = pagesByLink(sections)
  const horse = pages.get('docs/migrate/horse.md')!
  expect(withSiteLinks(horse, pages, '.html').text).toContain(
    '[z](../guides/zebra.html), [code](../errors.html#THREAD_BUSY), [a](../packages/ai.html), s\n',
  )
  expect(withSiteLinks(horse, pages, '.md').text).toContain('[z](../guides/zebra.md)')
})
