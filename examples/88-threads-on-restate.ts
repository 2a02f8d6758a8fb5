/**
 * Threads that Restate wakes: timers survive this process, and another node takes over when a node dies. It needs
 * a Restate server (RESTATE_INGRESS_URL, RESTATE_ADMIN_URL); with several nodes the store is PostgreSQL.
 *
 * Prints:
 *
 *     No Restate server is named. Start one: packages/restate/README.md says how.
 *     Then: RESTATE_INGRESS_URL=http://127.0.0.1:8080 RESTATE_ADMIN_URL=http://127.0.0.1:9070
 */

// #region program
import { says, scripted } from '@skein/ai/testing'
import { restateDispatcher } from '@skein/restate'
import { createRuntime, defineAgent } from '@skein/runtime'

const { RESTATE_INGRESS_URL: ingressUrl, RESTATE_ADMIN_URL: adminUrl } = process.env
if (!ingressUrl || !adminUrl) {
  console.log('No Restate server is named. Start one: packages/restate/README.md says how.')
  console.log(
    'Then: RESTATE_INGRESS_URL=http://127.0.0.1:8080 RESTATE_ADMIN_URL=http://127.0.0.1:9070',
  )
} else {
  const model = scripted(() => says('Woken by Restate.'))
  const runtime = await createRuntime({
    agents: [defineAgent({ name: 'greeter', instructions: 'You greet.', model })],
    dispatcher: restateDispatcher({ ingressUrl, adminUrl, serviceName: 'Example' }),
  })
  await runtime.start()
  const thread = await runtime.threads.create({ agent: 'greeter' })
  const { text } = await runtime.threads.run(thread.id, 'Hello?')
  console.log(text)
  await runtime.stop()
}
// #endregion program
