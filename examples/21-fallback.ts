/**
 * Three vendors that stand in for each other. The first fails and rests; who answered is in the
 * stream, who did not is among the warnings of the turn.
 *
 * Prints:
 *
 *     answered by backup/small: Hello from the second.
 *     primary/large failed with RATE_LIMITED.
 *     answered by backup/small: Hello again.
 *     primary/large rests after RATE_LIMITED.
 *     after a minute: I am back.
 */

// #region program
import { llm } from '@skein/ai'
import { fallback } from '@skein/ai/routing'
import { fails, says, scripted } from '@skein/ai/testing'
import { manualClock } from '@skein/base'

const clock = manualClock()
const primary = scripted([fails({ code: 'RATE_LIMITED' }), says('I am back.')], {
  provider: 'primary',
  modelId: 'large',
})
const backup = scripted([says('Hello from the second.'), says('Hello again.')], {
  provider: 'backup',
  modelId: 'small',
})

// #region fallback
// Give a key to the model it belongs to: { model: anthropic('…'), config: { apiKey } }.
const assistant = llm({ model: fallback([primary, { model: backup, params: {} }], { clock }) })
// #endregion fallback

for (let call = 0; call < 2; call++) {
  const stream = assistant.stream('Hello?')
  for await (const event of stream) {
    if (event.type !== 'message_start') continue
    process.stdout.write(`answered by ${event.delta.provider}/${event.delta.model}: `)
  }
  const { response, warnings } = await stream.turn
  console.log(response.text)
  console.log(warnings[0]?.message)
}

clock.advance(60_000)
console.log(`after a minute: ${(await assistant.generate('Hello?')).text}`)
// #endregion program
