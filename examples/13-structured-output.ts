/**
 * Asks for data instead of prose. The schema gives the type, and with `validate` it also checks the answer; an
 * answer that does not fit is repaired by the model. While it streams, the object can be watched growing.
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
import { llm, partials } from '@skein/ai'
import { says, scripted } from '@skein/ai/testing'
import { z } from 'zod'

const Forecast = z.object({
  city: z.string(),
  days: z.array(z.object({ high: z.number() })),
})

const model = scripted([says('{"city": "Oslo", "days": [{"high": -3}, {"high": 1}]}')])
const weather = llm({ model, structure: Forecast, validate: true, repair: 1 })

const stream = weather.stream('How warm will it be in Oslo?')
let shown = ''
for await (const partial of partials(stream)) {
  const text = JSON.stringify(partial)
  if (text !== shown) console.log(text)
  shown = text
}

const { data } = await stream.turn
const { city = '', days = [] } = data ?? {}
console.log(`${city}: ${Math.max(...days.map(({ high }) => high))} degrees at most`)
// #endregion program
