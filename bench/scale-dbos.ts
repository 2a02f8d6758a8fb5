/**
 * A process that runs the turns of bench/scale.ts as workflows of DBOS: two answers of a model and a call, each a step
 * whose result is stored. DBOS keeps no conversation; what a model is asked would be kept next to it.
 */
import { peer } from './runner/peers.ts'

interface Dbos {
  setConfig(config: object): void
  registerWorkflow<Args extends unknown[], Result>(
    work: (...args: Args) => Promise<Result>,
    options: { name: string },
  ): (...args: Args) => Promise<Result>
  runStep<T>(work: () => Promise<T>, options: { name: string }): Promise<T>
  launch(): Promise<void>
  startWorkflow<Args extends unknown[], Result>(
    workflow: (...args: Args) => Promise<Result>,
  ): (...args: Args) => Promise<{ getResult(): Promise<Result> }>
}

const { DBOS } = await peer<{ DBOS: Dbos }>('@dbos-inc/dbos-sdk')

/** Answers a message with one call, and a result with a text, in no time. */
const model = async (last: { role: string; content: string }): Promise<object> =>
  last.role === 'user'
    ? {
        role: 'assistant',
        calls: [{ id: crypto.randomUUID(), name: 'record', text: last.content }],
      }
    : { role: 'assistant', content: 'Done.' }

const turn = DBOS.registerWorkflow(
  async (text: string) => {
    await DBOS.runStep(() => model({ role: 'user', content: text }), { name: 'model' })
    const result = await DBOS.runStep(async () => 'recorded', { name: 'record' })
    return DBOS.runStep(() => model({ role: 'tool', content: result }), { name: 'model' })
  },
  { name: 'turn' },
)
DBOS.setConfig({
  name: 'bench',
  systemDatabaseUrl: process.argv[2]!,
  executorID: String(process.pid),
  runAdminServer: false,
  logLevel: 'error',
})
await DBOS.launch()

process.on(
  'message',
  ({ id, threadId, text }: { id: number; threadId?: string; text?: string }) => {
    if (threadId === undefined) {
      const { user, system } = process.cpuUsage()
      process.send?.({ id, value: String((user + system) / 1000) })
      return
    }
    void (async () => {
      const handle = await DBOS.startWorkflow(turn)(text ?? '')
      process.send?.({ id })
      await handle.getResult()
      process.send?.({ parked: threadId })
    })()
  },
)
process.once('disconnect', () => process.exit(0))
process.send?.({})
