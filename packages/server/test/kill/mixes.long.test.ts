import { join } from 'node:path'
import { expect, test } from 'vitest'
import { sqliteStore } from '@skein/runtime'
import { countOf } from '../../../../conformance/support/counts.ts'
import { tempFolder } from '../../../cli/test/kit.ts'
import { Mixes } from './mixes.ts'

const MIXES = countOf({ fast: 10, all: 10, deep: 200 })

test(
  `skein serve on SQLite, ${MIXES} mixes of kill -9, stop, time limit and cancel: the log never contradicts the world`,
  { timeout: 120_000 + 15_000 * MIXES },
  async () => {
    const path = join(tempFolder(), 'skein.db')
    const store = async () => sqliteStore({ path })
    const mixes = new Mixes({ store, nodes: [{}], env: { SKEIN_STORE: `sqlite:${path}` } })
    const counted = await mixes.play(MIXES)
    process.stdout.write(`SQLite: ${counted}\n`)
    expect(counted).toContain('0 contradictions')
  },
)
