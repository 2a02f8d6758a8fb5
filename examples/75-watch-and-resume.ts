/**
 * Numbered events of a thread: watch it live, leave in the middle, and come back where you were. Closing the
 * stream never stops the run.
 *
 * Prints:
 *
 *     saw: One two
 *     came back: three four.
 *     the log has the whole answer: One two three four.
 */

// #region program
import { createRuntime, defineAgent } from '@skein/runtime'
import { says, scripted } from '@skein/ai/testing'

const model = scripted(() => says('One two three four.'))
const agent = defineAgent({ name: 'counter', instructions: 'You count.', model })

const runtime = await createRuntime({ agents: [agent] })
await runtime.start()
const { id } = await runtime.threads.create({ agent: 'counter' })

// #region watch
let text = ''
let after = '0'
const watching = (async () => {
  for await (const { id: number, event } of runtime.subscribe(id, { after })) {
    after = number
    if (event.type === 'text_delta') text += event.text
    if (text === 'One two') return
  }
})()
await runtime.threads.send(id, 'Count!')
await watching
// #endregion watch
console.log(`saw: ${text}`)

await runtime.threads.settled(id)
let rest = ''
for await (const { event } of runtime.subscribe(id, { after, untilParked: true })) {
  if (event.type === 'text_delta') rest += event.text
  if (event.type === 'message_added' && event.message.type === 'assistant')
    rest = event.message.content.map((block) => ('text' in block ? block.text : '')).join('')
}
console.log(`came back: ${rest.replace(text, '').trim()}`)
const [, answer] = await runtime.threads.messages(id)
console.log(
  `the log has the whole answer: ${answer!.message.type === 'assistant' ? answer!.message.text : ''}`,
)
await runtime.stop()
// #endregion program
