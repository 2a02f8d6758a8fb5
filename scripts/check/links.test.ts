import { mkdirSync, mkdtempSync, rmSync, writeFileSync } from 'node:fs'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { afterAll, expect, test } from 'vitest'
import { headingsOf, linksOf, mapLinks } from '../docs/markdown.ts'
import { findLinkProblems } from './links.ts'

const folder = mkdtempSync(join(tmpdir(), 'skein-links-'))
afterAll(() => rmSync(folder, { recursive: true }))

function problemsOf(text: string): string[] {
  mkdirSync(join(folder, 'docs'), { recursive: true })
  writeFileSync(
    join(folder, 'docs/b.md'),
    '# B\n\n## What `x.y` does, and why\n\n## Twice\n\n## Twice\n',
  )
  writeFileSync(join(folder, 'a.md'), `# A\n\n${text}\n`)
  return findLinkProblems(folder, [join(folder, 'a.md')])
}

test('links to files, folders, anchors and https pages are accepted', () => {
  const text = [
    '[file](docs/b.md) [folder](docs) [own](#a) ![image](docs/b.md)',
    '[code](docs/b.md#what-xy-does-and-why) [second](docs/b.md#twice-1)',
    '[other](https://example.com/x#y)',
  ]
  expect(problemsOf(text.join('\n'))).toEqual([])
})

test.each([
  ['[x](docs/c.md)', 'a.md: docs/c.md does not exist.'],
  ['[x](docs/b.md#three)', 'a.md: docs/b.md#three names no heading.'],
  ['[x](#b)', 'a.md: #b names no heading.'],
  ['![x](docs/no.png)', 'a.md: docs/no.png does not exist.'],
  ['[x](http://example.com)', 'a.md: http://example.com is not an https: address.'],
  ['[x](https://localhost/a)', 'a.md: https://localhost/a is not an https: address.'],
  ['[x](/docs/b.md)', 'a.md: /docs/b.md is not relative to its page.'],
  ['[![badge](docs/no.png)](docs/b.md)', 'a.md: docs/no.png does not exist.'],
])('%s is reported', (text, problem) => {
  expect(problemsOf(text)).toEqual([problem])
})

test('what stands in code is no link and no heading', () => {
  const text =
    'See `[x](no.md)`.\n\n```md\n# Heading\n[x](no.md)\n```\n\n````md\n```\n[x](no.md)\n```\n````\n'
  expect(linksOf(text)).toEqual([])
  expect(headingsOf(text)).toEqual([])
})

test('a heading that is one name in code keeps its letters on the site, and has the anchor of GitHub', () => {
  const [heading] = headingsOf('### `INPUT_INVALID`\n')
  expect(heading).toMatchObject({ id: 'INPUT_INVALID', slug: 'input_invalid', level: 3 })
})

test('a link that is taken away leaves its text', () => {
  expect(
    mapLinks('See [the `x` file](x.ts) and [b](b.md "B").', ({ href }) =>
      href === 'x.ts' ? undefined : 'c',
    ),
  ).toBe('See the `x` file and [b](c "B").')
})
