/** Run by kill-resume.test.ts: works in a folder and kills itself after so many writes. */
import { agent, AgentState } from '@skein/agents'
import { type CheckpointStore, fileCheckpoints } from '@skein/agents/checkpoint'
import { scripted } from '@skein/ai/testing'
import { appendFileSync, writeFileSync } from 'node:fs'
import { join } from 'node:path'
import { jobScript } from './mortal-run.ts'

const [dir = '', dies = 'Infinity'] = process.argv.slice(2)
const files = fileCheckpoints({ dir: join(dir, 'checkpoints'), journal: true })
let left = Number(dies)

async function counted(write: Promise<unknown> | undefined): Promise<void> {
  await write
  if (--left <= 0) process.kill(process.pid, 'SIGKILL')
}

const checkpoints: CheckpointStore = {
  ...files,
  save: (id, state) => counted(files.save(id, state)),
  record: (id, entry) => counted(files.record?.(id, entry)),
}

const worker = agent({
  model: scripted(jobScript([2, 1, 3])),
  tools: [
    {
      name: 'act',
      description: 'Does something that must not be done twice.',
      parameters: { type: 'object' },
      run: ({ round, index }: { round: number; index: number }) =>
        appendFileSync(join(dir, 'effects.txt'), `${round}.${index}\n`),
    },
  ],
  toolStrategy: { maxConcurrency: 1 },
  checkpoints,
  durability: 'sync',
  sessionId: 'job',
})

const saved = await files.load('job')
const { state } = saved
  ? await worker.resume(AgentState.fromJSON(saved))
  : await worker.generate('do it', AgentState.initial())
await worker.flush()
writeFileSync(join(dir, 'answer.json'), JSON.stringify(state.messages.map(({ type }) => type)))
