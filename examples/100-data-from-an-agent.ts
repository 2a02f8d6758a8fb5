/**
 * An agent that answers with data: `output` is the schema. An answer that does not fit is shown to the model, which
 * tries again; `data` of the result fits, and has the type of the schema.
 *
 * Prints:
 *
 *     refund urgently
 *     requests: 2
 */

// #region program
import { says, scripted } from '@skein/ai/testing'
import { createRuntime, defineAgent } from '@skein/runtime'
import { z } from 'zod'

const Ticket = z.object({ category: z.enum(['refund', 'delivery']), urgent: z.boolean() })

const model = scripted([
  says('{"category":"money"}'), // no such category, and a member is missing
  says('{"category":"refund","urgent":true}'),
])
const sorter = defineAgent({
  name: 'sorter',
  instructions: 'Sort tickets.',
  model,
  output: Ticket,
})

const runtime = await createRuntime({ agents: [sorter] })
await runtime.start()
const { id } = await runtime.threads.create({ agent: sorter })
const { data } = await runtime.threads.run(id, 'Where is my money?!')
console.log(data?.category, data?.urgent ? 'urgently' : 'later')
console.log(`requests: ${model.requests.length}`)
await runtime.stop()
// #endregion program
