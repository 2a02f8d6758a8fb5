import { globSync, readdirSync, readFileSync, symlinkSync, writeFileSync } from 'node:fs'
import { join, posix } from 'node:path'
import { describe, expect, test } from 'vitest'
import { linksOf } from '../../../scripts/docs/markdown.ts'
import { exampleAgents, tempFolder } from './kit.ts'
import { Transcript } from './transcript.ts'

/** `SKEIN_WRITE_DOCS=1 npx vitest run packages/cli/test/guides.test.ts` writes the pages anew. */
const docs = join(import.meta.dirname, '..', '..', '..', 'docs')
const pages = globSync('{guides,migrate}/*.md', { cwd: docs })
  .map((file) => file.replaceAll('\\', '/'))
  .toSorted()

/** Fences that neither name a file nor are run here, and what runs them. */
const runElsewhere = new Map([
  [
    'skein check ./next --replay .skein --last 1000 --max-cost 5 --progress check.jsonl',
    'packages/cli/test/replay.test.ts',
  ],
  ['npm create skein@latest my-app', 'packages/create-skein/test/new-user.packed.test.ts'],
  [
    [
      'skein crashtest "npm start" --ready http://127.0.0.1:3000/health \\',
      `  --send 'POST http://127.0.0.1:3000/refunds {"order":"O-7"}'`,
    ].join('\n'),
    'packages/cli/test/crashtest.test.ts',
  ],
])

test('a guide shows nothing that no one runs', () => {
  expect(pages.length).toBeGreaterThanOrEqual(25)
  const strays = pages.flatMap((page) => {
    const text = readFileSync(join(docs, page), 'utf8')
    return [...text.matchAll(/^```(.*)\n([^]*?)^```$/gm)]
      .filter(([, info = '']) => !info.includes(' file=') && info !== 'console')
      .filter(([, , shown = '']) => !runElsewhere.has(shown.trim()))
      .map(([, info = '', shown = '']) => `${page}: ${info} ${shown.split('\n')[0]}`)
  })
  expect(strays).toEqual([])
})

test('the index names every page', () => {
  const index = linksOf(readFileSync(join(docs, 'README.md'), 'utf8'))
  const named = new Set(index.map(({ href }) => posix.normalize(href)))
  const unnamed = globSync('{*,guides/*,migrate/*}.md', { cwd: docs })
    .map((file) => file.replaceAll('\\', '/'))
    .filter((file) => file !== 'README.md' && file !== 'index.md' && !named.has(file))
  expect(unnamed).toEqual([])
})

/** A project that has the agents of the examples, as the readers of the guides have. */
function projectOfTheExamples(): string {
  const folder = tempFolder()
  for (const name of readdirSync(exampleAgents))
    symlinkSync(join(exampleAgents, name), join(folder, name))
  symlinkSync(join(exampleAgents, '..', 'crashtest'), join(folder, 'crashtest'))
  return folder
}

describe('a guide says what its commands print', () => {
  const withCommands = pages.filter((page) =>
    readFileSync(join(docs, page), 'utf8').includes('\n```console\n'),
  )
  test.for(withCommands)('%s', { timeout: 60_000 }, async (page) => {
    const file = join(docs, page)
    const before = readFileSync(file, 'utf8')
    const after = await new Transcript(projectOfTheExamples()).fill(before)
    if (process.env['SKEIN_WRITE_DOCS'] === undefined) expect(after).toBe(before)
    else writeFileSync(file, after)
    expect(after).toMatch(/^\$ /m)
  })
})
