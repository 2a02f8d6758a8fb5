import { agent, AgentState } from '@skein/agents'
import { fileCheckpoints } from '@skein/agents/checkpoint'
import { calls, says, scripted } from '@skein/ai/testing'
import { mkdtempSync, rmSync } from 'node:fs'
import files from 'node:fs/promises'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { type Bench, type Contender, measured } from '../runner/bench.ts'

const rounds = 300
const tool = {
  name: 'look_up',
  description: 'Looks up.',
  parameters: { type: 'object' },
  run: ({ id }: { id: number }) => ({ id, title: 'A thread', tags: ['long', 'red'] }),
}

/** Counts the bytes that files are written with while `work` runs. */
async function bytesOf(work: () => Promise<unknown>): Promise<number> {
  const { open } = files
  let bytes = 0
  files.open = async (...args) => {
    const handle = await open(...args)
    const { writeFile } = handle
    handle.writeFile = async (data, ...more) => {
      bytes += Buffer.byteLength(data as string | Uint8Array)
      return writeFile.call(handle, data, ...more)
    }
    return handle
  }
  try {
    await work()
    return bytes
  } finally {
    files.open = open
  }
}

function saving(durability: 'async' | 'sync'): Contender {
  return {
    prepare: () => async () => {
      const dir = mkdtempSync(join(tmpdir(), 'bench-'))
      const bytes = await bytesOf(async () => {
        const worker = agent({
          model: scripted((_, index) =>
            index < rounds ? calls('look_up', { id: index }) : says('.'),
          ),
          tools: [tool],
          checkpoints: fileCheckpoints({ dir, fsync: false }),
          durability,
        })
        await worker.generate('go', AgentState.initial())
        await worker.flush()
      })
      rmSync(dir, { recursive: true })
      return measured(bytes / rounds, rounds)
    },
  }
}

const bench: Bench = {
  title: `Agents: bytes that file checkpoints write per step, on average over ${rounds} rounds`,
  baseline: 'steps faster than the disk',
  measure: 'returned',
  unit: 'bytes',
  warmups: 0,
  repetitions: 1,
  processes: 1,
  contenders: {
    'steps faster than the disk': saving('async'),
    'each step waits for its save': saving('sync'),
  },
}
export default bench
