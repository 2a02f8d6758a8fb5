/**
 * An answer that outlives the connection of its reader: the browser loses the line in the middle and
 * continues with the number of the last event it saw. The model was asked once.
 *
 * Prints:
 *
 *     first connection: Once upon a
 *     second connection, after event 5: time there was a skein.
 *     asked 1 time; an unknown stream: 404
 */

// #region program
import { llm } from '@skein/ai'
import { readSse, ResumableStreams } from '@skein/ai/middleware'
import { says, scripted } from '@skein/ai/testing'

const model = scripted([says('Once upon a time there was a skein.')])
const streams = new ResumableStreams()

/** A `fetch` handler: POST starts a stream, GET reads it, as often as one likes. */
async function handler(request: Request): Promise<Response> {
  if (request.method === 'POST') await streams.start('story', llm({ model }).stream('A story!'))
  return streams.respond(new URL(request.url).pathname.slice(1), request)
}

const url = 'http://localhost/story'
let last = 0
process.stdout.write('first connection: ')
const first = await handler(new Request(url, { method: 'POST' }))
for await (const { number, event } of readSse(first.body!)) {
  last = number
  if (event.type === 'text_delta') process.stdout.write(event.delta.text)
  if (number === 5) break // the line is gone
}

process.stdout.write(`\nsecond connection, after event ${last}:`)
const again = await handler(new Request(url, { headers: { 'last-event-id': `${last}` } }))
for await (const { event } of readSse(again.body!))
  if (event.type === 'text_delta') process.stdout.write(event.delta.text)

const unknown = await handler(new Request('http://localhost/other'))
console.log(`\nasked ${model.requests.length} time; an unknown stream: ${unknown.status}`)
// #endregion program
