import { agent, AgentState } from '@skein/agents'
import { type CheckpointStore, fileCheckpoints, memoryCheckpoints } from '@skein/agents/checkpoint'
import { calls, says, scripted } from '@skein/ai/testing'
import { mkdtempSync, rmSync } from 'node:fs'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import type { Bench, Contender } from '../runner/bench.ts'

const rounds = 100
const tool = {
  name: 'look_up',
  description: 'Looks up.',
  parameters: { type: 'object' },
  run: ({ id }: { id: number }) => ({ id, title: 'A thread', tags: ['long', 'red'] }),
}

function saving(open: (dir: string) => CheckpointStore | undefined): Contender {
  return {
    prepare: () => async () => {
      const dir = mkdtempSync(join(tmpdir(), 'bench-'))
      const checkpoints = open(dir)
      const model = scripted((_, index) =>
        index < rounds ? calls('look_up', { id: index }) : says('.'),
      )
      const worker = agent({ model, tools: [tool], ...(checkpoints && { checkpoints }) })
      const { state } = await worker.generate('go', AgentState.initial())
      await worker.flush()
      rmSync(dir, { recursive: true })
      return state.messages.length
    },
  }
}

const bench: Bench = {
  title: `Agents: ${rounds} rounds with the scripted model, each step saved`,
  baseline: 'not saved',
  amount: { value: rounds, unit: 'rounds' },
  warmups: 2,
  repetitions: 6,
  contenders: {
    'not saved': saving(() => undefined),
    memory: saving(() => memoryCheckpoints()),
    files: saving((dir) => fileCheckpoints({ dir })),
    'files without fsync': saving((dir) => fileCheckpoints({ dir, fsync: false })),
    'files with a journal': saving((dir) => fileCheckpoints({ dir, journal: true })),
  },
}
export default bench
