import { execFileSync } from 'node:child_process'
import { join } from 'node:path'
import { measured, type Bench, type Timed } from '../runner/bench.ts'
import { peer } from '../runner/peers.ts'

const root = join(import.meta.dirname, '../..')

/** A module is loaded once in a process, so each process gives one value. */
function once(load: () => number | Promise<number>): () => Timed {
  return () => {
    let value: number | undefined
    return async () => measured((value ??= await load()), 'ok')
  }
}

async function timePeers(...names: readonly string[]): Promise<number> {
  const start = performance.now()
  for (const name of names) await peer<object>(name)
  return performance.now() - start
}

/** What is published, not the TypeScript that this process runs: built, and loaded elsewhere. */
function timeSkein(): number {
  execFileSync(join(root, 'node_modules/.bin/tsc'), ['-b', 'packages/ai'], { cwd: root })
  const program = `const start = performance.now()
    await import('@skein/ai'); await import('@skein/ai/openai')
    console.log(performance.now() - start)`
  const args = ['--no-warnings', '--input-type=module', '-e', program]
  return Number(execFileSync(process.execPath, args, { cwd: root, encoding: 'utf8' }))
}

const bench: Bench = {
  title: 'AI: import of the core and one vendor',
  baseline: 'skein',
  measure: 'returned',
  unit: 'ms',
  warmups: 0,
  repetitions: 1,
  processes: 9,
  contenders: {
    skein: { prepare: once(timeSkein) },
    'openai sdk': { peers: ['openai'], prepare: once(() => timePeers('openai')) },
    'ai sdk': {
      peers: ['ai', '@ai-sdk/openai-compatible'],
      prepare: once(() => timePeers('ai', '@ai-sdk/openai-compatible')),
    },
    langchain: {
      peers: ['@langchain/openai'],
      prepare: once(() => timePeers('@langchain/openai')),
    },
  },
}
export default bench
