/**
 * An agent that answers with data: `output` of the prompt is the schema. An answer that does not fit is shown to the
 * model, which tries again; `data` of the result fits.
 *
 * Prints:
 *
 *     {"category":"refund","urgent":true}
 *     requests: 2
 */

// #region program
import { says, scripted } from '@skein/ai/testing'
import { createRuntime, defineAgent, definePrompt } from '@skein/runtime'
import { z } from 'zod'

const Ticket = z.object({ category: z.enum(['refund', 'delivery']), urgent: z.boolean() })

const model = scripted([
  says('{"category":"money"}'), // no such category, and a member is missing
  says('{"category":"refund","urgent":true}'),
])
const prompt = definePrompt({ name: 'sorter', prompt: 'Sort tickets.', model, output: Ticket })
const sorter = defineAgent({ name: 'sorter', sideA: { prompt } })

const runtime = await createRuntime({ agents: [sorter] })
await runtime.start()
const { id } = await runtime.threads.create({ agent: 'sorter' })
const { data } = await runtime.threads.run(id, 'Where is my money?!')
console.log(JSON.stringify(Ticket.parse(data)))
console.log(`requests: ${model.requests.length}`)
await runtime.stop()
// #endregion program
