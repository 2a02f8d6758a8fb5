/**
 * What the compiler checks for a model: parameters by the names of its vendor, results by the name of the tool.
 *
 * Prints:
 *
 *     sent: {"effort":"high"}, brand_new true
 *     and web_search next to the weather
 *     Oslo: 7 degrees, measured 1970-01-01T00:00:00.000Z
 */

// #region program
import { llm, type Params, tool } from '@skein/ai'
import { openai } from '@skein/ai/openai'
import { openaiTools } from '@skein/ai/server-tools'
import { calls, says, vendorServer } from '@skein/ai/testing'
import { z } from 'zod'

const weather = tool({
  name: 'weather',
  description: 'The weather of a city.',
  parameters: z.object({ city: z.string() }),
  run: () => ({ degrees: 7, at: new Date(0) }),
})

const server = vendorServer([calls('weather', { city: 'Oslo' }), says('Cold.'), says('Hi.')])
const forecaster = llm({
  model: openai('gpt-5'), // known ids complete, any other is accepted
  config: { fetch: server.fetch, baseUrl: 'http://vendor.test/v1', apiKey: 'none' },
  tools: [weather],
  // A misspelled name (`reasonning`) or value does not compile.
  params: { reasoning: { effort: 'high' }, tools: [openaiTools.webSearch()] },
})
const turn = await forecaster.generate('How is Oslo?')

// A parameter that the types do not know yet is declared as Params. It is sent like all others.
const params: Params = { brand_new: true }
await forecaster.with({ params }).generate('Hello')

const [first, , last] = server.requests.map(({ body }) => body)
const [mine, theirs] = (first?.['tools'] ?? []) as { name?: string; type: string }[]
console.log(`sent: ${JSON.stringify(first?.['reasoning'])}, brand_new ${last?.['brand_new']}`)
console.log(`and ${theirs?.type} next to the ${mine?.name}`)

for (const execution of turn.toolExecutions)
  if (!execution.isError && execution.toolName === 'weather') {
    const { arguments: args, result } = execution // { city: string } and { degrees: number; at: string }
    console.log(`${args.city}: ${result.degrees} degrees, measured ${result.at}`)
  }
// #endregion program
