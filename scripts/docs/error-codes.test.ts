import { readFileSync } from 'node:fs'
import { join } from 'node:path'
import { expect, test } from 'vitest'
import { root } from '../workspace.ts'
import { readErrorCodes } from './error-codes.ts'
import { headingsOf } from './markdown.ts'

const page = readFileSync(join(root, 'docs/errors.md'), 'utf8')
const sections = headingsOf(page).filter(({ level }) => level === 3)
const { files, messages } = readErrorCodes()
const documented = sections.map(({ id }) => id)

/** Codes of Node and its parser that our transport gives to causes; `NETWORK_ERROR` describes them. */
const OF_NODE = ['ECONNRESET', 'EPROXY', 'ETIMEDOUT', 'HPE_INVALID']

test('every error code of every package has its section in docs/errors.md, and no section is without a code', () => {
  const codes = [...files.keys()].filter((code) => !OF_NODE.includes(code))
  expect(codes.length).toBeGreaterThan(200)
  const missing = codes.filter((code) => !documented.includes(code))
  expect(missing.map((code) => `${code} (${files.get(code)?.join(', ')})`)).toEqual([])
  expect(documented.filter((code) => !codes.includes(code))).toEqual([])
  expect(documented).toEqual([...new Set(documented)])
})

test('a section says the cause and what to do, and its example is a message that the sources can produce', () => {
  const problems = sections.flatMap(({ id, end }, at) => {
    const text = page.slice(end, sections[at + 1]?.start)
    const example = /^> (.+)$/m.exec(text)?.[1]
    const templates = messages.get(id) ?? []
    const isKnown = templates.some((template) => template.test(example ?? ''))
    return [
      ...(/\*\*What to do:\*\* \S/.test(text) ? [] : [`${id} does not say what to do.`]),
      ...(example !== undefined && templates.length > 0 && !isKnown
        ? [`${id}: no source has the message "${example}".`]
        : []),
    ]
  })
  expect(problems).toEqual([])
})
