/**
 * A front desk hands the thread to a specialist: same thread, whole history. A hook adds the date to every
 * system text.
 *
 * Prints:
 *
 *     Hardware here: Unplug it, wait, plug it in.
 *     the specialist's system prompt: You fix hardware. Today is Sunday.
 *     and saw 3 messages of the front desk
 */

// #region program
import { createRuntime, defineAgent, defineHook } from '@skein/runtime'
import { calls, says, scripted } from '@skein/ai/testing'

const today = defineHook({
  id: 'today',
  hook: 'after_system_message',
  execute: (_, text) => `${text} Today is Sunday.`,
})
const mender = scripted(() => says('Hardware here: Unplug it, wait, plug it in.'))
// #region agents
const hardware = defineAgent({
  name: 'hardware',
  exposeAsTool: true,
  toolDescription: 'Knows printers.',
  hooks: [today],
  instructions: 'You fix hardware.',
  model: mender,
})
const greeter = scripted(() => calls('hardware', {}))
const desk = defineAgent({
  name: 'desk',
  instructions: 'Route.',
  model: greeter,
  tools: [hardware],
})
// #endregion agents

const runtime = await createRuntime({ agents: [desk] })
await runtime.start()
const { id } = await runtime.threads.create({ agent: 'desk' })
const { text } = await runtime.threads.run(id, 'My printer is dead.')
console.log(text)
const [request] = mender.requests
console.log(`the specialist's system prompt: ${request!.system}`)
console.log(`and saw ${request!.messages.length} messages of the front desk`)
await runtime.stop()
// #endregion program
