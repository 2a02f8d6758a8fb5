/**
 * A thread lives in a file. The process ends, another one opens the file, and the conversation continues.
 *
 * Prints:
 *
 *     Hello Ada, I will remember that.
 *     idle after 15 events
 *     2 messages in the file; next answer: You are Ada.
 */

// #region program
import { randomBytes } from 'node:crypto'
import { mkdtemp, rm } from 'node:fs/promises'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { createRuntime, defineAgent } from '@skein/runtime'
import { says, scripted } from '@skein/ai/testing'

const model = scripted((request) =>
  says(request.messages.length === 1 ? 'Hello Ada, I will remember that.' : 'You are Ada.'),
)
const greeter = defineAgent({ name: 'greeter', instructions: 'You remember names.', model })

const folder = await mkdtemp(join(tmpdir(), 'skein-'))
const secretKey = randomBytes(32) // in production from the environment, never next to the data
// #region restart
const first = await createRuntime({ agents: [greeter], folder, secretKey })
await first.start()
const thread = await first.threads.create({ agent: 'greeter' })
const { text } = await first.threads.run(thread.id, 'I am Ada.')
console.log(text)
const { lifecycle, seq } = await first.threads.get(thread.id)
console.log(`${lifecycle} after ${seq} events`)
await first.stop()

const second = await createRuntime({ agents: [greeter], folder, secretKey })
await second.start()
const kept = await second.threads.messages(thread.id)
const answer = await second.threads.run(thread.id, 'Who am I?')
console.log(`${kept.length} messages in the file; next answer: ${answer.text}`)
// #endregion restart
await second.stop()
await rm(folder, { recursive: true })
// #endregion program
