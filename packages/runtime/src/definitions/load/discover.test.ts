import { execFile } from 'node:child_process'
import { mkdir, mkdtemp, rm, writeFile } from 'node:fs/promises'
import { tmpdir } from 'node:os'
import { dirname, join } from 'node:path'
import { pathToFileURL } from 'node:url'
import { promisify } from 'node:util'
import { afterEach, beforeEach, describe, expect, test } from 'vitest'
import type { Problem } from '../definition-error.ts'

const definitions = pathToFileURL(join(import.meta.dirname, '..', '..', 'index.ts')).href
const head = `
import { defineAgent, defineEffect, defineEndpoint, definePrompt, defineTool } from '${definitions}'
const model = { modelId: 'm', provider: Object.assign(() => model, { handlers: {} }) }
`
const good: Readonly<Record<string, string>> = {
  'lib/word.mjs': `export const word = 'Looks.'`,
  'prompts/main.ts': `export default definePrompt({ name: 'main', prompt: 'Hi.', model, tools: ['look'] })`,
  'agents/support.ts': `
    import main from '../prompts/main.ts'
    export default defineAgent({ name: 'support', sideA: { prompt: main } })`,
  'agents/teams/other.mjs': `export default defineAgent({ name: 'other', sideA: { prompt: 'main' } })`,
  'tools/look.ts': `
    import { word } from '../lib/word.mjs'
    const name: string = 'look'
    export default defineTool({ name, description: word, risk: 'read_only' })`,
  'tools/look.test.ts': `throw new Error('a test is no definition')`,
  'tools/look.d.ts': `throw new Error('types are no definition')`,
  'tools/notes.txt': `not code`,
  'effects/remind.js': `export default defineEffect({ name: 'remind', execute: () => 1 })`,
  'endpoints/orders/[id].get.ts': `export default () => new Response('ok')`,
  'endpoints/index.post.ts': `
    export default defineEndpoint({ path: '', method: 'POST', execute: () => new Response('ok') })`,
}

let folder: string
beforeEach(async () => {
  folder = await mkdtemp(join(tmpdir(), 'skein-discover-'))
})
afterEach(() => rm(folder, { recursive: true, force: true }))

async function write(files: Readonly<Record<string, string>>): Promise<void> {
  for (const [path, text] of Object.entries(files)) {
    await mkdir(dirname(join(folder, path)), { recursive: true })
    const isDefinition = !path.startsWith('lib/') && !text.startsWith('throw')
    await writeFile(join(folder, path), isDefinition ? head + text : text)
  }
}

/**
 * Runs code in a Node of its own, since a test runner imports modules in its own way. The code has
 * `discover`, `folder`, `write(path, text)` and answers with `return`.
 */
async function inNode(code: string): Promise<any> {
  const driver = `
import { writeFile, rm } from 'node:fs/promises'
import { DefinitionError, discover } from '${definitions}'
const folder = ${JSON.stringify(folder)}
const write = (path, text) => writeFile(folder + '/' + path, ${JSON.stringify(head)} + text)
const problems = (error) => { if (error instanceof DefinitionError) return error.problems; throw error }
const answer = await (async () => { ${code} })()
process.stdout.write(JSON.stringify(answer))`
  const path = join(folder, 'driver.mjs')
  await writeFile(path, driver)
  const { stdout } = await promisify(execFile)(process.execPath, [
    '--conditions=@skein/source',
    path,
  ])
  return JSON.parse(stdout)
}

const problemsOf = async (files: Readonly<Record<string, string>>): Promise<readonly Problem[]> => {
  await write({ ...good, ...files })
  return inNode(`return discover(folder).then(() => [], problems)`)
}

test('files become a registry; names and imports lead to the same definitions', async () => {
  await write(good)
  const found = await inNode(`
    const registry = await discover(folder)
    const { a } = registry.agent('support')
    return {
      agents: [...registry.agents.keys()],
      tools: a.prompt.tools.map(({ name, tool }) => [name, tool.description]),
      same: a.prompt === registry.agent('other').a.prompt,
      effects: [...registry.effects.keys()],
      endpoints: registry.endpoints.map(({ kind, method, path }) => [kind, method, path]),
      warnings: registry.warnings,
    }`)
  expect(found).toEqual({
    agents: ['support', 'other'],
    tools: [['look', 'Looks.']],
    same: true,
    effects: ['remind'],
    endpoints: [
      ['endpoint', 'POST', ''],
      ['endpoint', 'GET', 'orders/[id]'],
    ],
    warnings: [],
  })
})

test('everything that is wrong with the files is told at once, with the file', async () => {
  const problems = await problemsOf({
    'agents/broken.ts': `export default defineAgent({ name: 'broken' `,
    'agents/nothing.ts': `export const agent = 1`,
    'agents/twin.ts': `export default defineAgent({ name: 'other', sideA: { prompt: 'main' } })`,
    'agents/wrong.ts': `export default defineAgent({ name: 'wrong', sideA: { prompt: 'mian' } })`,
    'tools/peek.ts': `export default defineTool({ name: 'pick', description: '', risk: 'read_only' })`,
    'tools/bad.ts': `export default defineTool({ name: 'bad', description: '', risk: 'none', args: 7 })`,
    'effects/later.ts': `export default defineEffect({ name: 'sooner', execute: () => 1 })`,
    'endpoints/plain.ts': `export default () => new Response()`,
    'endpoints/a.put.ts': `
      export default defineEndpoint({ path: 'b', method: 'POST', execute: () => new Response() })`,
    'hooks/not-a-hook.ts': `export default 7`,
  })
  const told = problems.map(({ file, field, message }) => `${file} | ${field} | ${message}`)
  const expected = [
    /^agents\/broken.ts \|  \| cannot be imported: \w*Error/,
    /^agents\/nothing.ts \|  \| has no default export; it exports agent/,
    /^agents\/twin.ts \| name \| two different agents are called "other" \(agents\/teams\/other.mjs and agents\/twin.ts\)/,
    /^agents\/wrong.ts \| sideA.prompt \| there is no prompt "mian"; did you mean "main"/,
    /^tools\/peek.ts \| name \| must be "peek", like its file/,
    /^tools\/bad.ts \| args \| must be a Standard Schema/,
    /^effects\/later.ts \| name \| must be "later"/,
    /^endpoints\/plain.ts \|  \| must name its method/,
    /^endpoints\/a.put.ts \| path \| must be "a"/,
    /^endpoints\/a.put.ts \| method \| must be "PUT"/,
    /^hooks\/not-a-hook.ts \|  \| must be a hook, not 7/,
  ]
  for (const pattern of expected) expect(told).toContainEqual(expect.stringMatching(pattern))
  expect(told.filter((line) => !expected.some((pattern) => pattern.test(line)))).toEqual([])
})

test.each([
  ['is not a folder', `return discover(folder + '/nowhere').then(() => [], problems)`],
  ['has no definitions', `return discover(folder).then(() => [], problems)`],
])('a folder that %s is refused', async (message, code) => {
  expect(await inNode(code)).toMatchObject([{ message: expect.stringContaining(message) }])
})

describe('reload', () => {
  test('reads files anew, with all that they import', async () => {
    await write(good)
    const found = await inNode(`
      const registry = await discover(folder)
      const look = () => registry.agent('support').a.prompt.tools[0].tool.description
      const before = look()
      await writeFile(folder + '/lib/word.mjs', "export const word = 'Peers.'")
      await write('agents/third.ts', "export default defineAgent({ name: 'third', sideA: { prompt: 'main' } })")
      await rm(folder + '/agents/teams/other.mjs')
      const problems = await registry.reload()
      return { before, after: look(), problems, agents: [...registry.agents.keys()] }`)
    expect(found).toEqual({
      before: 'Looks.',
      after: 'Peers.',
      problems: [],
      agents: ['support', 'third'],
    })
  })

  test('an edit that is wrong keeps the last registry that was right, until it is mended', async () => {
    await write(good)
    const found = await inNode(`
      const registry = await discover(folder)
      const text = () => registry.agent('support').a.prompt.definition.prompt
      const save = (body) => write('prompts/main.ts', 'export default definePrompt(' + body)
      await save("{ name: 'main', prompt: 'Broken.', model, tools: ['look'] ")
      const first = await registry.reload()
      const kept = text()
      await save("{ name: 'main', prompt: 'Wrong.', model, tools: ['gone'] })")
      const second = await registry.reload()
      const keptAgain = text()
      await save("{ name: 'main', prompt: 'Mended.', model, tools: ['look'] })")
      const [third, fourth] = await Promise.all([registry.reload(), registry.reload()])
      return { first, kept, second, keptAgain, third, fourth, now: text() }`)
    expect(found).toMatchObject({
      kept: 'Hi.',
      second: [{ subject: 'prompt "main"', field: 'tools[0]', file: 'prompts/main.ts' }],
      keptAgain: 'Hi.',
      third: [],
      fourth: [],
      now: 'Mended.',
    })
    expect(found.first).toContainEqual(
      expect.objectContaining({
        file: 'prompts/main.ts',
        message: expect.stringContaining('import'),
      }),
    )
  })
})

test('an agent in agents/ may also be a sub-agent of another file, which imports it', async () => {
  await write({
    'agents/desk.ts': `
      import { asSubagent } from '${definitions}'
      import librarian from './librarian.ts'
      export default defineAgent({ name: 'desk', instructions: '', model, tools: [asSubagent(librarian)] })`,
    'agents/librarian.ts': `
      export default defineAgent({ name: 'librarian', description: 'Knows.', instructions: '', model })`,
  })
  const agents = await inNode(`
    const registry = await discover(folder)
    await registry.reload()
    return [...registry.agents.values()].map(({ name, type }) => name + ' ' + type)`)
  expect(agents.toSorted()).toEqual([
    'desk ai_human',
    'librarian ai_human',
    'librarian_subagent dual_ai',
  ])
})
