/**
 * What a turn cost, by a price table of your own, and the same question again for nothing.
 *
 * Prints:
 *
 *     A skein is a length of yarn.
 *     asked: 12 in, 8 out, 0.000156 dollars
 *     A skein is a length of yarn.
 *     asked again: 0 in, 0 out, 0 dollars (This answer came from the cache.)
 */

// #region program
import { llm, type Turn } from '@skein/ai'
import {
  cacheMiddleware,
  costMiddleware,
  memoryCache,
  type ModelCatalog,
} from '@skein/ai/middleware'
import { says, scripted, stops } from '@skein/ai/testing'

// #region cost
// In dollars for a million tokens. Prices change, so the table is yours.
const catalog: ModelCatalog = {
  'scripted/script': { limits: { contextTokens: 200_000 }, prices: { input: 3, output: 15 } },
}
const usage = { inputTokens: 12, outputTokens: 8, totalTokens: 20 }
const model = scripted([[says('A skein is a length of yarn.'), stops('end_turn', { usage })]])

const dictionary = llm({
  model,
  middleware: [costMiddleware({ catalog }), cacheMiddleware({ store: memoryCache() })],
})
// #endregion cost

report('asked', await dictionary.generate('What is a skein?'))
report('asked again', await dictionary.stream('What is a skein?').turn)

function report(how: string, { response, usage, warnings }: Turn): void {
  console.log(response.text)
  const { inputTokens, outputTokens, costUsd } = usage
  const notes = warnings.map(({ message }) => ` (${message})`).join('')
  console.log(`${how}: ${inputTokens} in, ${outputTokens} out, ${costUsd} dollars${notes}`)
}
// #endregion program
