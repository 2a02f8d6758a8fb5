/**
 * An e-mail cannot be undone, and one field of its tool says so. A person reads it, corrects the address, and
 * exactly what she approved is sent. The model learns which call ran.
 *
 * Prints:
 *
 *     send_mail to pat@exmaple.org waits; cannot be undone: true
 *     sent to pat@example.org: The lamp is on its way.
 *     denied: {"to":"pat@exmaple.org","text":"The lamp is on its way."}
 *     done: {"to":"pat@example.org","text":"The lamp is on its way."}
 *     completed: Pat knows.
 */

// #region program
import { calls, says, scripted } from '@skein/ai/testing'
import { createRuntime, defineAgent, defineTool } from '@skein/runtime'
import { z } from 'zod'

// #region tool
const sendMail = defineTool({
  name: 'send_mail',
  description: 'Sends an e-mail.',
  args: z.object({ to: z.string(), text: z.string() }),
  risk: 'write_high_risk',
  rollback: 'impossible',
  execute: (_, { to, text }) => {
    console.log(`sent to ${to}: ${text}`)
    return 'sent'
  },
})
// #endregion tool
const model = scripted([
  calls('send_mail', { to: 'pat@exmaple.org', text: 'The lamp is on its way.' }),
  ({ messages }) => {
    const [said, told] = messages.slice(-2)
    if (said?.type === 'assistant' && told?.type === 'tool_result')
      for (const [place, { isError }] of told.results.entries())
        console.log(
          `${isError ? 'denied' : 'done'}: ${JSON.stringify(said.toolCalls?.[place]?.arguments)}`,
        )
    return says('Pat knows.')
  },
])
const runtime = await createRuntime({
  agents: [
    defineAgent({ name: 'mailer', instructions: 'Tell customers.', model, tools: [sendMail] }),
  ],
})
await runtime.start()

// #region decide
const thread = await runtime.threads.create({ agent: 'mailer' })
const { waiting } = await runtime.threads.run(thread.id, 'Tell Pat about the lamp.')
for (const {
  threadId,
  interruptId,
  toolName,
  arguments: args,
  request,
  isIrreversible,
} of waiting) {
  const mail = args as { readonly to: string; readonly text: string }
  console.log(`${toolName} to ${mail.to} waits; cannot be undone: ${isIrreversible}`)
  await runtime.inbox.approve({
    threadId,
    interruptId,
    by: 'ann',
    digest: request?.digest, // of what she has read
    with: { ...mail, to: 'pat@example.org' },
  })
}
// #endregion decide
const { outcome, text } = await runtime.threads.settled(thread.id)
console.log(`${outcome}: ${text}`)
await runtime.stop()
// #endregion program
