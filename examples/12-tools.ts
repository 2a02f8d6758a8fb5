/**
 * Lets a model work with a folder of notes. The tools check their arguments, deleting needs a yes, and
 * what a tool refuses goes back to the model, which continues.
 *
 * Prints:
 *
 *     read_note {"name":"../secrets.md"}: refused
 *     read_note {"name":"todo.md"}: "buy milk"
 *     Delete todo.md? No.
 *     delete_note {"name":"todo.md"}: refused
 *     Your list says: buy milk. I left it in place.
 */

// #region program
import { llm } from '@skein/ai'
import { calls, says, scripted } from '@skein/ai/testing'
import { mkdtemp, rm, writeFile } from 'node:fs/promises'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { notesTools } from './notes-tools.ts'

const folder = await mkdtemp(join(tmpdir(), 'notes-'))
await writeFile(join(folder, 'todo.md'), 'buy milk')

const tools = notesTools(folder, async (file) => {
  console.log(`Delete ${file}? No.`)
  return false
})

const model = scripted([
  [calls('read_note', { name: '../secrets.md' }), calls('read_note', { name: 'todo.md' })],
  calls('delete_note', { name: 'todo.md' }),
  says('Your list says: buy milk. I left it in place.'),
])

const stream = llm({ model, tools, toolStrategy: { maxIterations: 5 } }).stream('Tidy my notes.')
const asked = new Map<string, string>()
for await (const { type, delta } of stream) {
  if (type === 'tool_execution_start') asked.set(delta.toolCallId, JSON.stringify(delta.arguments))
  if (type === 'tool_execution_end') {
    const answer = delta.isError ? 'refused' : JSON.stringify(delta.result)
    console.log(`${delta.toolName} ${asked.get(delta.toolCallId)}: ${answer}`)
  }
}
console.log((await stream.turn).text)
await rm(folder, { recursive: true })
// #endregion program
