/**
 * A node of tests and benches, in a process of its own: a runtime on PostgreSQL (or SQLite) with one of the
 * dispatchers. It is told what to do by messages of its parent, and says which threads it has parked.
 */
import { appendFileSync } from 'node:fs'
import { calls, says, scripted, waits } from '@skein/ai/testing'
import { postgresStore, queueDispatcher } from '@skein/postgres'
import { restateDispatcher } from '@skein/restate'
import {
  createRuntime,
  defineAgent,
  definePrompt,
  defineTool,
  type RuntimeOptions,
} from '@skein/runtime'
import { z } from 'zod'
import type { Report, Request, WorkerOptions } from './workers.ts'

const options = JSON.parse(process.argv[2]!) as WorkerOptions
const tell = (report: Report): void => {
  if (process.connected) process.send?.(report)
}
process.once('disconnect', () => process.exit(1))

const record = defineTool({
  name: 'record',
  description: 'Writes a line to a file. It is not idempotent.',
  risk: 'write_low_risk',
  rollback: 'impossible',
  args: z.object({ text: z.string() }),
  async execute(state, { text }) {
    if (options.effects !== undefined)
      appendFileSync(options.effects, `${state.threadId} ${text} ${process.pid}\n`)
    if (options.toolMs) await new Promise((resolve) => setTimeout(resolve, options.toolMs))
    return 'recorded'
  },
})

/** Answers each message with one call, and then with a text. */
const model = scripted(({ messages }) => {
  const last = messages.at(-1)!
  const pause = options.modelMs ? [waits(options.modelMs)] : []
  if (last.type !== 'user') return [...pause, says('Done.')]
  const [part] = last.content
  return [...pause, calls('record', { text: part?.type === 'text' ? part.text : '' })]
})
const prompt = definePrompt({ name: 'clerk', prompt: 'You record.', model, tools: [record] })
const agent = defineAgent({ name: 'clerk', sideA: { prompt } })

const dispatchers: Record<WorkerOptions['engine'], () => RuntimeOptions['dispatcher']> = {
  local: () => undefined,
  restate: () => restateDispatcher(options.restate!),
  queue: () => queueDispatcher({ connectionString: options.databaseUrl! }),
}
const runtime = await createRuntime({
  agents: [agent],
  secretKey: Buffer.alloc(32, 7),
  owner: options.owner,
  folder: options.folder,
  store:
    options.databaseUrl === undefined
      ? undefined
      : await postgresStore({ connectionString: options.databaseUrl }),
  dispatcher: dispatchers[options.engine](),
  onError: (error) => tell({ type: 'error', text: String(error) }),
})
await runtime.start()

void (async () => {
  for await (const { id, lifecycle, seq } of runtime.changes())
    if (lifecycle === 'idle' || lifecycle === 'failed') tell({ type: 'parked', threadId: id, seq })
})()

process.on('message', async ({ id, ...request }: Request) => {
  try {
    switch (request.type) {
      case 'create':
        tell({ type: 'answer', id, value: (await runtime.threads.create({ agent: 'clerk' })).id })
        break
      case 'send':
        await runtime.threads.send(request.threadId, request.text)
        tell({ type: 'answer', id, value: '' })
        break
      case 'usage': {
        const { user, system } = process.cpuUsage()
        tell({ type: 'answer', id, value: String((user + system) / 1000) })
        break
      }
      case 'stop':
        await runtime.stop({ graceMs: 3_000 })
        process.exit(0)
    }
  } catch (error) {
    tell({ type: 'answer', id, value: '', error: String(error) })
  }
})
tell({ type: 'ready' })
