import { appendFileSync, readFileSync } from 'node:fs'
import { join } from 'node:path'
import { calls, says, scripted } from '@skein/ai/testing'
import { createRuntime, defineAgent, defineTool } from '@skein/runtime'
import { z } from 'zod'

const folder = process.argv[2] ?? '.killed'
const bank = join(folder, 'bank.txt')
const refund = defineTool({
  name: 'refund',
  description: 'Pays an order back.',
  args: z.object({ order: z.string() }),
  risk: 'write_low_risk',
  probe: ({ order }) => (readFileSync(bank, 'utf8').includes(order) ? 'applied' : 'absent'),
  execute: (_, { order }) => {
    appendFileSync(bank, `${order}\n`) // the money leaves
    return process.kill(process.pid, 'SIGKILL') // and the process dies before anything is stored
  },
})
const model = scripted(({ messages }) =>
  messages.at(-1)?.type === 'tool_result' ? says('Done.') : calls('refund', { order: 'O-7' }),
)
const desk = defineAgent({ name: 'desk', instructions: 'Refund.', model, tools: [refund] })

const runtime = await createRuntime({ agents: [desk], folder, keepsSecretKeyWithData: true })
await runtime.start() // continues what was running when the process died
const [thread] = await runtime.threads.list()
const { outcome } = thread
  ? await runtime.threads.settled(thread.id)
  : await runtime.threads.run((await runtime.threads.create({ agent: 'desk' })).id, 'Refund O-7.')
console.log(`${outcome}; the bank paid ${readFileSync(bank, 'utf8').trim()}`)
await runtime.stop()
