import { setFlagsFromString } from 'node:v8'
import { runInNewContext } from 'node:vm'
import { measured, type Bench, type Contender } from '../runner/bench.ts'
import { newFolder } from './clients/client.ts'
import { startRuntime } from './clients/skein.ts'
import { startMock } from './start-mock.ts'

const atOnce = 64

/** The heap after so many threads had a turn each and came to rest. */
function idleThreads(count: number): Contender {
  return {
    async prepare() {
      const options = { baseUrl: await startMock(), folder: newFolder(), lookUp: () => ({}) }
      const { threads, idle } = await startRuntime(options, 'says')
      let left = count
      const work = async (): Promise<void> => {
        while (left-- > 0) {
          const { id } = await threads.create({ agent: 'helper' })
          await threads.run(id, 'Hello.')
        }
      }
      await Promise.all(Array.from({ length: atOnce }, work))
      await idle()
      setFlagsFromString('--expose-gc')
      const collect = runInNewContext('gc') as () => void
      return () => {
        collect()
        return measured(process.memoryUsage().heapUsed / 1e6, 'at rest')
      }
    },
  }
}

const bench: Bench = {
  title: 'Runtime: heap with threads at rest that had one turn each (a few hundred are remembered)',
  baseline: '1,000 threads',
  measure: 'returned',
  unit: 'MB',
  warmups: 1,
  repetitions: 3,
  processes: 1,
  contenders: { '1,000 threads': idleThreads(1000), '10,000 threads': idleThreads(10_000) },
}
export default bench
