/**
 * An ordinary agent becomes a subagent in one line. The parent hands a picture over, and the model of the
 * child is shown it; the log has the path of the picture, not its bytes.
 *
 * Prints:
 *
 *     the viewer got: text, text, image
 *     the desk says: It is one red pixel.
 *     bytes in the log: false
 */

// #region program
import { asSubagent, createRuntime, defineAgent } from '@skein/runtime'
import { calls, says, scripted } from '@skein/ai/testing'

const picture =
  'iVBORw0KGgoAAAANSUhEUgAAAAEAAAABCAYAAAAfFcSJAAAADUlEQVR42mNk+M9QDwADhgGAWjR9awAAAABJRU5ErkJggg=='

const eye = scripted([says('One red pixel.')])
const viewer = defineAgent({
  name: 'viewer',
  description: 'Looks at pictures.',
  instructions: 'Describe what you see.',
  model: eye,
})

const head = scripted([
  calls('viewer', { message: 'What is this?', files: ['/pixel.png'] }),
  says('It is one red pixel.'),
])
const tools = [{ name: asSubagent(viewer), initAttachmentsProperty: 'files' }]
const desk = defineAgent({
  name: 'desk',
  instructions: 'Help.',
  model: head,
  tools,
})

const runtime = await createRuntime({ agents: [desk] })
await runtime.start()
const { id } = await runtime.threads.create({ agent: 'desk' })
await runtime.threads.files.write(id, '/pixel.png', Buffer.from(picture, 'base64'))
const { text } = await runtime.threads.run(id, {
  text: 'Look at this',
  attachments: ['/pixel.png'],
})

const [shown] = eye.requests[0]!.messages
const types = shown?.type === 'user' ? shown.content.map(({ type }) => type) : []
console.log(`the viewer got: ${types.join(', ')}`)
console.log(`the desk says: ${text}`)
const threads = await runtime.threads.list({ rootId: id })
const logs = await Promise.all(threads.map((one) => runtime.threads.events(one.id)))
console.log(`bytes in the log: ${JSON.stringify(logs).includes(picture)}`)
await runtime.stop()
// #endregion program
