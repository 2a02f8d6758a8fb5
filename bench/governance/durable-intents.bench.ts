import type { Bench, Contender } from '../runner/bench.ts'
import { newFileLog } from './setup.ts'

const entries = 1_920
const line = JSON.stringify({ metadata: { 'uaicp:seq': 0 }, padding: 'x'.repeat(600) })

/** Durable entries from so many writers at a time; each waits until its own is on disk. */
function writers(count: number): Contender {
  return {
    async prepare() {
      const log = await newFileLog()
      let next = 0
      return async () => {
        const before = log.size
        const write = async (): Promise<void> => {
          for (let index = 0; index < entries / count; index++) {
            const request_id = `00000000-0000-4000-8000-${String(next++).padStart(12, '0')}`
            const named = line.replace('{', `{"request_id":"${request_id}",`)
            await log.append({ request_id, seq: 0, line: named }, { durable: true })
          }
        }
        await Promise.all(Array.from({ length: count }, write))
        return log.size - before
      }
    },
  }
}

const bench: Bench = {
  title: `${entries.toLocaleString('en')} durable entries of 650 bytes (goal: 5,000 a second with 64 writers)`,
  baseline: 'one writer, one sync each',
  amount: { value: entries, unit: 'entries' },
  warmups: 1,
  repetitions: 5,
  contenders: {
    'one writer, one sync each': { ...writers(1), sameOutput: false },
    '64 writers': { ...writers(64), sameOutput: false },
  },
}

export default bench
