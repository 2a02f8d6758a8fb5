import { createHash } from 'node:crypto'
import { createReadStream } from 'node:fs'
import { mkdtempSync } from 'node:fs'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { generateKey } from '@skein/governance/approvals'
import type { PublicJwk } from '@skein/governance/approvals'
import { fileLog, verifyLogFolder } from '@skein/governance/file-log'
import type { Bench } from '../runner/bench.ts'
import { identity, setUp } from './setup.ts'

const runs = 500
const callsPerRun = 196

/** A log as a governor writes it: 200 entries a run, most of them calls. */
async function writeLog(): Promise<{ dir: string; key: PublicJwk; size: number }> {
  const dir = mkdtempSync(join(tmpdir(), 'skein-bench-'))
  const { publicJwk, privateJwk } = await generateKey()
  const log = await fileLog({ dir, origin: 'bench', key: privateJwk })
  const { governor, task, tool } = setUp(log, 'read_only')
  for (let run = 0; run < runs; run++) {
    await governor.run(task, { identity, input: null }, async (run) => {
      for (let index = 0; index < callsPerRun; index++)
        await run.call(tool, { order: `A-${index}` })
      return null
    })
  }
  const { size } = log
  await log.close()
  return { dir, key: publicJwk, size }
}

const bench: Bench = {
  title: 'verify a log of 100,000 entries from disk (goal: 100,000 entries a second)',
  baseline: 'hash the file',
  amount: { value: 100_000, unit: 'entries' },
  warmups: 1,
  repetitions: 3,
  contenders: {
    // The floor: every byte once, no lines, no tree, no JSON.
    'hash the file': {
      sameOutput: false,
      async prepare() {
        const { dir } = await writeLog()
        return async () => {
          const hash = createHash('sha256')
          for await (const chunk of createReadStream(join(dir, 'entries.ndjson')))
            hash.update(chunk as Buffer)
          return hash.digest('hex')
        }
      },
    },
    '@skein/governance': {
      sameOutput: false,
      async prepare() {
        const { dir, key, size } = await writeLog()
        return async () => {
          const verdict = await verifyLogFolder(dir, { keys: [key] })
          if (!verdict.ok || verdict.sealed !== size) throw new Error('the log does not verify')
          return verdict.size
        }
      },
    },
  },
}

export default bench
