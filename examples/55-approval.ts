/**
 * A call that waits for a person ends the run as data. The state is stored, someone decides, and another
 * process continues: what was finished is not done again.
 *
 * Prints:
 *
 *     interrupted: approval {"delete":"old.log"}
 *     read_file ran 1 time(s) so far
 *     delete_file deleted old.log
 *     Deleted, as you allowed.
 *     read_file ran 1 time(s) so far
 *     denied: Left in place, as you wished.
 */

// #region program
import { agent, AgentState, type Answer } from '@skein/agents'
import { defer, tool } from '@skein/ai'
import { calls, says, scripted } from '@skein/ai/testing'
import { z } from 'zod'

let reads = 0
const readFile = tool({
  name: 'read_file',
  description: 'Reads a file.',
  parameters: z.object({ path: z.string() }),
  run: () => `read ${++reads} time(s)`,
})
const deleteFile = tool({
  name: 'delete_file',
  description: 'Deletes a file.',
  parameters: z.object({ path: z.string() }),
  approval: ({ path }) => defer({ kind: 'approval', request: { delete: path } }),
  run: ({ path }) => console.log(`delete_file deleted ${path}`),
})

const tools = [readFile, deleteFile]
const model = scripted([
  [calls('read_file', { path: 'old.log' }), calls('delete_file', { path: 'old.log' })],
])
const { state, interrupts = [] } = await agent({ model, tools }).generate(
  'Tidy up',
  AgentState.initial(),
)
const [waiting] = interrupts
console.log(`interrupted: ${waiting?.kind} ${JSON.stringify(waiting?.request)}`)
console.log(`read_file ran ${reads} time(s) so far`)
const stored = JSON.stringify(state)

/** In another process: all it needs is the stored text and the answer. */
async function decide(answer: Answer, reply: string): Promise<string> {
  const later = agent({ model: scripted([says(reply)]), tools })
  const { turn } = await later.resume(AgentState.fromJSON(JSON.parse(stored)), {
    [waiting!.id]: answer,
  })
  return turn.text
}
console.log(await decide({ type: 'approve' }, 'Deleted, as you allowed.'))
console.log(`read_file ran ${reads} time(s) so far`)
const no = await decide({ type: 'deny', reason: 'Keep it.' }, 'Left in place, as you wished.')
console.log(`denied: ${no}`)
// #endregion program
