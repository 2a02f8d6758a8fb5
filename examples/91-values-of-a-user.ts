/**
 * What an agent remembers about a user: values that all threads of the user share. A tool changes them together with
 * its result, and no one's change is lost, also when several threads work at the same time.
 *
 * Prints:
 *
 *     a new thread knows: {"visits":3,"language":"de"}
 *     another user: {}
 *     export: visits = 3, language = de
 *     erased: 2
 */

// #region program
import { createRuntime, defineAgent, defineTool } from '@skein/runtime'
import { calls, says, scripted } from '@skein/ai/testing'
import { z } from 'zod'

// #region tool
const greet = defineTool({
  name: 'greet',
  description: 'Greets the user and remembers the visit.',
  args: z.object({}),
  risk: 'write_low_risk',
  execute: async ({ user }) => {
    await user.update('visits', (visits) => Number(visits ?? 0) + 1)
    if ((await user.get('language')) === undefined) await user.set('language', 'de')
    return 'Guten Tag!'
  },
})
// #endregion tool
const model = scripted(({ messages }) =>
  messages.at(-1)?.type === 'tool_result' ? says('Done.') : calls('greet', {}),
)
const runtime = await createRuntime({
  agents: [defineAgent({ name: 'door', instructions: 'Greet.', model, tools: [greet] })],
})
await runtime.start()

const { threads, users } = runtime
const visit = async (owner: string): Promise<string> => {
  const { id } = await threads.create({ agent: 'door', tenant: 'acme', owner })
  await threads.run(id, 'Hello!')
  return id
}
await visit('ada')
await Promise.all([visit('ada'), visit('ada')])
const { id } = await threads.create({ agent: 'door', tenant: 'acme', owner: 'ada' })
const known = await runtime.withState(id, async ({ user }) => ({
  visits: await user.get('visits'),
  language: await user.get('language'),
}))
console.log(`a new thread knows: ${JSON.stringify(known)}`)
const other = await threads.create({ agent: 'door', tenant: 'acme', owner: 'bob' })
const nothing = await runtime.withState(other.id, ({ user }) => user.list())
console.log(`another user: ${JSON.stringify(nothing)}`)

// #region outside
const ada = { tenant: 'acme', user: 'ada' }
const values = (await users.values.list(ada)).toReversed()
console.log(`export: ${values.map(({ key, value }) => `${key} = ${String(value)}`).join(', ')}`)
console.log(`erased: ${await users.values.erase(ada)}`)
// #endregion outside
await runtime.stop()
// #endregion program
