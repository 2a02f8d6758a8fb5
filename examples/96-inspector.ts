/**
 * Calls of plain `llm()` in Studio: one line writes each call as a file, and `skein studio` shows it as a thread, with
 * the request as it was sent, the tools, the tokens and the times.
 *
 * Prints:
 *
 *     It is 14 degrees in Oslo.
 *     written: 1 file
 *     request 2: You know the weather. 3 messages, 1 tool
 */

// #region program
import { mkdtemp, readdir, rm } from 'node:fs/promises'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { llm, tool } from '@skein/ai'
import { calls, says, scripted } from '@skein/ai/testing'
import { inspector, openInspected } from '@skein/server/inspector'
import { z } from 'zod'

const folder = await mkdtemp(join(tmpdir(), 'inspected-')) // default: .skein/inspector, which `skein studio` opens
const weather = tool({
  name: 'weather',
  description: 'Tells the weather of a city.',
  parameters: z.object({ city: z.string() }),
  run: ({ city }) => ({ city, degrees: 14 }),
})
const ask = llm({
  model: scripted([calls('weather', { city: 'Oslo' }), says('It is 14 degrees in Oslo.')]),
  system: 'You know the weather.',
  tools: [weather],
  middleware: [inspector({ folder })], // the one line; `agent({ middleware })` takes it too
})
console.log((await ask.generate('How warm is Oslo?')).text)
// #endregion

const files = await readdir(folder)
console.log(`written: ${files.length} file`)

// What `skein studio` does, without the page.
const { runtime, refresh } = await openInspected(folder)
await refresh()
const [thread] = await runtime.threads.list()
const [, second] = await runtime.threads.logs(thread!.id)
const { system, messages, tools } = await runtime.threads.log(thread!.id, second!.logId)
console.log(`request 2: ${system} ${messages.length} messages, ${tools.length} tool`)
await runtime.stop()
await rm(folder, { recursive: true })
