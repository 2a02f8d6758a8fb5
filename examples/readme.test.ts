import { globSync, readFileSync } from 'node:fs'
import { expect, test } from 'vitest'
import { headingsOf, linksOf } from '../scripts/docs/markdown.ts'

const page = readFileSync(`${import.meta.dirname}/README.md`, 'utf8')

test('every example appears once in the README, under a task', () => {
  const programs = globSync('{,langchain/}{[0-9][0-9],[0-9][0-9][0-9]}-*.{ts,tsx}', {
    cwd: import.meta.dirname,
  })
  // An example with packages of its own is a folder with a README.
  const folders = globSync('*/README.md', { cwd: import.meta.dirname })
  const examples = [...programs, ...folders].map((file) => file.replaceAll('\\', '/')).toSorted()
  expect(examples.length).toBeGreaterThan(70)
  const [firstTask] = headingsOf(page).filter(({ level }) => level === 2)
  const listed = linksOf(page.slice(firstTask!.start)).map(({ href }) => href)
  expect(listed.toSorted()).toEqual(examples)
})
