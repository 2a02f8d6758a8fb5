/** One node in a process of its own: a server on PostgreSQL whose agent says 60 words slowly, or 6,000 if asked for more. */
import { postgresLink, postgresStore } from '@skein/postgres'
import { createRuntime, memoryGovernanceKeys } from '@skein/runtime'
import { serve } from '@skein/server'
import { agentOf } from '../../runtime/test/api/machine.ts'
import { paced } from '../../server/test/nodes/cluster.ts'

const [url, schema, name, portText] = process.argv.slice(2) as [string, string, string, string]
const port = Number(portText)
const words = (length: number): string =>
  Array.from({ length }, (_, index) => `w${index}`).join(' ')
const runtime = await createRuntime({
  agents: [
    agentOf(
      'talker',
      paced(10, ({ messages }) => words(messages.at(-1)?.text === 'more' ? 6_000 : 60)),
    ),
  ],
  store: await postgresStore({ connectionString: url, schema }),
  owner: `${name} ${process.pid}`,
  secretKey: Buffer.alloc(32, 5).toString('base64'),
  keys: memoryGovernanceKeys({ seed: 'cluster' }),
  limits: { leaseMs: 1_500 },
  nodes: {
    link: postgresLink({ connectionString: url, schema }),
    address: `http://127.0.0.1:${port}`,
    secret: 'the-secret-of-the-nodes-of-this-test',
    name,
  },
})
await runtime.start()
await serve(runtime, { port, auth: 'none' })
process.stdout.write('ready\n')
