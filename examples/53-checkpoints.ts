/**
 * Saves the state after each step, without holding up the run, and continues from it in another process.
 *
 * Prints:
 *
 *     Fixed.
 *     on disk: my-session: checkpoint.json metadata.json versions
 *     session my-session, step 2
 *     resumed with 5 messages: And tested.
 *     other-session: Start fresh
 */

// #region program
import { agent, AgentState } from '@skein/agents'
import { fileCheckpoints } from '@skein/agents/checkpoint'
import { calls, says, scripted } from '@skein/ai/testing'
import { mkdtemp, readdir, rm } from 'node:fs/promises'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { codeTools } from './code-tools.ts'

const { Bash, Read, Write } = codeTools(new Map())
const dir = await mkdtemp(join(tmpdir(), 'checkpoints-'))

const store = fileCheckpoints({ dir })
const coder = agent({
  model: scripted([calls('write_file', { path: 'a.ts', text: 'ok' }), says('Fixed.')]),
  tools: [Bash, Read, Write],
  checkpoints: store,
  sessionId: 'my-session', // one is made if it is left out
})
const { turn } = await coder.generate('Fix the bug', AgentState.initial())
console.log(turn.text)
await coder.flush() // before the process ends

const [session = ''] = await readdir(dir)
console.log(`on disk: ${session}: ${(await readdir(join(dir, session))).sort().join(' ')}`)
const metadata = await store.loadMetadata('my-session')
console.log(`session ${metadata?.sessionId}, step ${metadata?.step}`)

/** Somewhere else, later. */
async function goOn(sessionId: string): Promise<void> {
  const model = scripted([says('And tested.')])
  const later = agent({ ...coder, model, checkpoints: fileCheckpoints({ dir }), sessionId })
  const saved = await fileCheckpoints({ dir }).load(sessionId)
  if (saved) {
    const restored = AgentState.fromJSON(saved)
    const { turn: next } = await later.generate('Continue', restored)
    console.log(
      `resumed with ${model.requests[0]?.messages.length} messages: ${next.response.text}`,
    )
  } else {
    await later.generate('Start fresh', AgentState.initial())
    console.log(`${sessionId}: ${model.requests[0]?.messages[0]?.text}`)
  }
  await later.flush()
}
await goOn('my-session')
await goOn('other-session')
await rm(dir, { recursive: true })
// #endregion program
