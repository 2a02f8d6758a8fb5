/**
 * Asks for data instead of prose. The schema gives the type; the answer is parsed, not validated, so a
 * check of your own comes last. While it streams, the object can be watched growing.
 *
 * Prints:
 *
 *     {}
 *     {"city":"Oslo"}
 *     {"city":"Oslo","days":[{}]}
 *     {"city":"Oslo","days":[{"high":-3}]}
 *     {"city":"Oslo","days":[{"high":-3},{}]}
 *     {"city":"Oslo","days":[{"high":-3},{"high":1}]}
 *     Oslo: 1 degrees at most
 */

// #region program
import { llm, parsedObjectMiddleware, type ParsedStreamEvent } from '@skein/ai'
import { says, scripted } from '@skein/ai/testing'
import { z } from 'zod'

const Forecast = z.object({
  city: z.string(),
  days: z.array(z.object({ high: z.number() })),
})

const model = scripted([says('{"city": "Oslo", "days": [{"high": -3}, {"high": 1}]}')])
const weather = llm({ model, structure: Forecast, middleware: [parsedObjectMiddleware()] })

const stream = weather.stream('How warm will it be in Oslo?')
let shown = ''
for await (const event of stream) {
  if (event.type !== 'object_delta') continue
  const text = JSON.stringify((event as ParsedStreamEvent).delta.parsed)
  if (text !== shown) console.log(text)
  shown = text
}

const { data } = await stream.turn
const { city, days } = Forecast.parse(data)
console.log(`${city}: ${Math.max(...days.map(({ high }) => high))} degrees at most`)
// #endregion program
