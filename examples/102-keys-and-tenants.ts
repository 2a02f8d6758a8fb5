/**
 * Who may call, and what each sees: a key belongs to a tenant, and may belong to a user and to fewer scopes. A thread
 * that a key may not see is not found.
 *
 * Prints:
 *
 *     ada: 1 thread
 *     bob, of the same tenant: 404 THREAD_NOT_FOUND
 *     the desk of acme: 1 thread
 *     another tenant: 404 THREAD_NOT_FOUND
 *     a wrong key: 401 UNAUTHENTICATED
 *     ada decides what waits: 403 SCOPE_MISSING
 */

// #region program
import { says, scripted } from '@skein/ai/testing'
import { createRuntime, defineAgent } from '@skein/runtime'
import { createClient } from '@skein/server/client'
import { serve } from '@skein/server'

const model = scripted(() => says('Hello.'))
const support = defineAgent({ name: 'support', instructions: 'Help.', model })
const runtime = await createRuntime({ agents: [support] })
await runtime.start()

const own = ['threads:read', 'threads:write'] as const
const server = await serve(runtime, {
  port: 0,
  auth: {
    keys: [
      { key: 'key-of-ada-0123456789', tenant: 'acme', user: 'ada', scopes: own },
      { key: 'key-of-bob-0123456789', tenant: 'acme', user: 'bob', scopes: own },
      // No user: the whole tenant. This one may also decide what waits for a person.
      { key: 'key-of-desk-0123456789', tenant: 'acme', scopes: [...own, 'approvals:write'] },
      { key: 'key-of-other-0123456789', tenant: 'other', scopes: own },
    ],
  },
})
const as = (name: string) => createClient({ url: server.url, apiKey: `key-of-${name}-0123456789` })

const thread = await as('ada').threads.create({ agent: 'support' })
// #endregion program

const tried = async (work: Promise<unknown>): Promise<string> =>
  work.then(
    () => 'allowed',
    ({ status, code }: { status: number; code: string }) => `${status} ${code}`,
  )
const count = async (name: string): Promise<string> =>
  `${(await as(name).threads.list()).length} thread`
console.log(`ada: ${await count('ada')}`)
console.log(`bob, of the same tenant: ${await tried(as('bob').threads.get(thread.id))}`)
console.log(`the desk of acme: ${await count('desk')}`)
console.log(`another tenant: ${await tried(as('other').threads.get(thread.id))}`)
console.log(`a wrong key: ${await tried(as('nobody').threads.get(thread.id))}`)
const decision = as('ada').inbox.approve({ threadId: thread.id, interruptId: 'any' })
console.log(`ada decides what waits: ${await tried(decision)}`)
await server.close()
await runtime.stop()
