import { llm, type ToolExecution } from '@skein/ai'
import { calls, says, scripted, type ScriptPart } from '@skein/ai/testing'
import { mkdirSync, mkdtempSync, readdirSync, rmSync, symlinkSync, writeFileSync } from 'node:fs'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { afterEach, beforeEach, expect, test } from 'vitest'
import { notesTools } from '../../examples/notes-tools.ts'

let root = ''
let asked: string[] = []

beforeEach(() => {
  root = mkdtempSync(join(tmpdir(), 'skein-notes-'))
  mkdirSync(join(root, 'notes'))
  writeFileSync(join(root, 'secret.md'), 'the key is 4711')
  writeFileSync(join(root, 'notes', 'todo.md'), 'buy milk (a.b)*')
  symlinkSync(join(root, 'secret.md'), join(root, 'notes', 'link.md'))
  // A folder whose name only begins like that of the notes.
  mkdirSync(join(root, 'notes-of-others'))
  writeFileSync(join(root, 'notes-of-others', 'secret.md'), 'the key is 4711')
  symlinkSync(join(root, 'notes-of-others', 'secret.md'), join(root, 'notes', 'alias.md'))
  asked = []
})
afterEach(() => rmSync(root, { recursive: true }))

/** What comes of one call by a model that is up to no good. */
async function outcomeOf(call: ScriptPart, isApproved = false): Promise<ToolExecution> {
  const tools = notesTools(join(root, 'notes'), async (file) => {
    asked.push(file)
    return isApproved
  })
  const turn = await llm({ model: scripted([call, says('ok')]), tools }).generate('x')
  return turn.toolExecutions[0]!
}

test.each([
  '../secret.md',
  '/etc/passwd',
  '..\\secret.md',
  'a/../../secret.md',
  'todo.md\u0000.md',
  'link.md',
  'alias.md',
  '',
])('UPP-118 a path out of the folder is refused: %j', async (name) => {
  for (const tool of ['read_note', 'delete_note']) {
    const { isError, result } = await outcomeOf(calls(tool, { name }), true)
    expect(isError).toBe(true)
    expect(JSON.stringify(result)).not.toContain('4711')
  }
  expect(readdirSync(root)).toContain('secret.md')
})

test.each<[string, object]>([
  ['read_note', {}],
  ['read_note', { name: 7 }],
  ['read_note', { name: ['todo.md'] }],
  ['find_notes', { text: '' }],
  ['find_notes', { text: 'x'.repeat(10_000) }],
])('UPP-119 %s checks its arguments: %j', async (tool, args) => {
  expect((await outcomeOf(calls(tool, args as never))).isError).toBe(true)
})

test('UPP-119 text from the model is no pattern', async () => {
  expect((await outcomeOf(calls('find_notes', { text: '(.*)*' }))).result).toEqual([])
  expect((await outcomeOf(calls('find_notes', { text: '(a.b)*' }))).result).toEqual(['todo.md'])
})

test('UPP-119 a link into a folder whose name begins alike is sanitised away', async () => {
  expect((await outcomeOf(calls('read_note', { name: 'alias.md' }))).isError).toBe(true)
  expect((await outcomeOf(calls('find_notes', { text: 'key' }))).result).toEqual([])
})

test('UPP-118 a search does not look behind a link out of the folder', async () => {
  expect((await outcomeOf(calls('find_notes', { text: '4711' }))).result).toEqual([])
})

test('UPP-120 deleting asks for approval and does nothing without it', async () => {
  expect((await outcomeOf(calls('delete_note', { name: 'todo.md' }))).isError).toBe(true)
  expect(asked).toEqual(['todo.md'])
  expect(readdirSync(join(root, 'notes'))).toContain('todo.md')
  expect((await outcomeOf(calls('delete_note', { name: 'todo.md' }), true)).isError).toBe(false)
  expect(readdirSync(join(root, 'notes'))).not.toContain('todo.md')
})
