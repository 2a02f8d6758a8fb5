/**
 * Sends a picture and a document, keeps the conversation in a thread, and takes that through JSON and
 * back without losing a byte.
 *
 * Prints:
 *
 *     user: image/png of 8 bytes, "notes" as text/plain, What is this?
 *     A picture and some notes.
 *     as JSON and back: 2 messages, the same bytes
 */

// #region program
import { Document, Image, llm, Thread, UserMessage } from '@skein/ai'
import { says, scripted } from '@skein/ai/testing'

const bytes = new Uint8Array([0x89, 0x50, 0x4e, 0x47, 0x0d, 0x0a, 0x1a, 0x0a])
const model = scripted([says('A picture and some notes.')])
const thread = new Thread()

const question = new UserMessage([
  Image.fromBytes(bytes).toBlock(), // its type is found in its first bytes
  Document.fromText('Buy milk.', 'notes').toBlock(),
  { type: 'text', text: 'What is this?' },
])
thread.append(await llm({ model }).generate(thread, question))

const sent = model.requests[0]!.messages[0]!
const picture = Image.fromBlock(sent.images[0]!)
const [notes] = sent.documents
console.log(
  `user: ${picture.mimeType} of ${picture.toBytes().length} bytes,`,
  `"${notes?.title}" as ${notes?.mimeType}, ${sent.text}`,
)
console.log(thread.messages.at(-1)?.text)

const copy = Thread.fromJSON(JSON.stringify(thread))
const restored = Image.fromBlock(copy.messages[0]!.images[0]!).toBytes()
const isSame = restored.every((byte, index) => byte === bytes[index])
console.log(`as JSON and back: ${copy.length} messages, ${isSame ? 'the same' : 'other'} bytes`)
// #endregion program
