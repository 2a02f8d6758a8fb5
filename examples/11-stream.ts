/**
 * Reads an answer while it is written, and stops another one in the middle.
 *
 * Prints:
 *
 *     Old pond, | a frog | leaps in.
 *     end_turn after 8 tokens
 *     One two three CANCELLED, got "One two three"
 */

// #region program
import { isUPPError, llm } from '@skein/ai'
import { says, scripted, waits } from '@skein/ai/testing'

const model = scripted([
  says('Old pond, | a frog | leaps in.'),
  [says('One two three'), waits(60_000), says(' four')],
])
const poet = llm({ model })

const stream = poet.stream('Write a haiku.')
for await (const event of stream) {
  if (event.type === 'text_delta') process.stdout.write(event.delta.text)
}
const { stopReason, usage } = await stream.turn
console.log(`\n${stopReason} after ${usage.outputTokens} tokens`)

const slow = poet.stream('Count.')
setTimeout(() => slow.abort(), 50)
try {
  for await (const event of slow) {
    if (event.type === 'text_delta') process.stdout.write(event.delta.text)
  }
} catch (error) {
  // What had arrived, and been paid for, is on the error.
  if (isUPPError(error)) console.log(` ${error.code}, got "${error.turn?.text}"`)
}
// #endregion program
