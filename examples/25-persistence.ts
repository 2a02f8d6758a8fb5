/**
 * A conversation that is saved turn by turn and taken up again later; a call that fails keeps what
 * it had produced, apart from the conversation.
 *
 * Prints:
 *
 *     saved: complete, failed
 *     of the failed one: "The first verse goes"
 *     taken up again with 2 messages: Roses are red.
 */

// #region program
import { llm } from '@skein/ai'
import { loadThread, memoryTurns, persistenceMiddleware } from '@skein/ai/middleware'
import { fails, says, scripted } from '@skein/ai/testing'

const store = memoryTurns() // yours: a table with a row for each turn
const threadId = 'thread-1'
const model = scripted([
  says('What shall I write?'),
  [says('The first verse goes'), fails('The connection was reset.')],
  says('Roses are red.'),
])
const poet = llm({ model, middleware: [persistenceMiddleware({ store, threadId })] })

await poet.generate('Hello!')
await poet.stream(await loadThread(store, threadId), 'A poem.').turn.catch(() => {})

const saved = await store.load(threadId)
console.log('saved:', saved.map(({ status }) => status).join(', '))
const everything = await loadThread(store, threadId, { includePartial: true })
console.log(`of the failed one: ${JSON.stringify(everything.messages.at(-1)?.text)}`)

const thread = await loadThread(store, threadId)
const count = thread.length
thread.append(await poet.generate(thread, 'A poem.'))
console.log(`taken up again with ${count} messages: ${thread.messages.at(-1)?.text}`)
// #endregion program
