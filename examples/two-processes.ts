/** Runs an example in two processes, one after the other: the second knows what the first has stored. */
import { execFileSync } from 'node:child_process'
import {
  appendFileSync,
  existsSync,
  mkdtempSync,
  readFileSync,
  rmSync,
  writeFileSync,
} from 'node:fs'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { generateKey, type PrivateJwk } from '@skein/governance/approvals'
import { fileLog, filePayloads } from '@skein/governance/file-log'

/** What a process of the example has: its number, and a folder with what is stored. */
export interface OneProcess {
  readonly number: 1 | 2
  readonly audit: Awaited<ReturnType<typeof fileLog>>
  readonly payloads: ReturnType<typeof filePayloads>
  save(name: string, text: string): void
  load(name: string): string
  /** The shop's side: what was refunded, in a file, because it outlives the processes too. */
  refund(order: string): { refunded: string }
  refunds(): string
}

export async function inTwoProcesses(example: string): Promise<OneProcess> {
  const [, , number, dir] = process.argv
  if (dir === undefined) {
    const folder = mkdtempSync(join(tmpdir(), 'skein-two-processes-'))
    for (const next of ['1', '2']) {
      const args = [...process.execArgv, example, next, folder]
      execFileSync(process.execPath, args, { stdio: 'inherit' })
    }
    rmSync(folder, { recursive: true })
    process.exit()
  }
  const path = (name: string): string => join(dir, name)
  if (number === '1') {
    const { privateJwk } = await generateKey()
    writeFileSync(path('key'), JSON.stringify(privateJwk), { mode: 0o600 })
  }
  const key = JSON.parse(readFileSync(path('key'), 'utf8')) as PrivateJwk
  return {
    number: number === '1' ? 1 : 2,
    audit: await fileLog({ dir: path('log'), origin: 'shop.example/audit', key }),
    payloads: filePayloads({ dir: path('payloads') }),
    save: (name, text) => writeFileSync(path(name), text),
    load: (name) => readFileSync(path(name), 'utf8'),
    refund: (order) => {
      appendFileSync(path('refunds'), `${order} `)
      return { refunded: order }
    },
    refunds: () =>
      existsSync(path('refunds')) ? readFileSync(path('refunds'), 'utf8').trim() : '',
  }
}
