/**
 * Runs `killed-in-a-payment.ts` twice. The first process is killed when the money has left and nothing is stored about it.
 * The second one asks the bank and does not pay again: if it did, it would be killed too.
 *
 * Prints:
 *
 *     process 1: SIGKILL
 *     process 2: completed; the bank paid O-7
 */
import { spawnSync } from 'node:child_process'
import { mkdtempSync, rmSync } from 'node:fs'
import { tmpdir } from 'node:os'
import { join } from 'node:path'

const folder = mkdtempSync(join(tmpdir(), 'skein-killed-'))
const program = join(import.meta.dirname, 'killed-in-a-payment.ts')
for (const number of [1, 2]) {
  const args = [...process.execArgv, program, folder]
  const { signal, stdout, stderr } = spawnSync(process.execPath, args, { encoding: 'utf8' })
  console.log(`process ${number}: ${signal ?? stdout.trim()}${stderr}`)
}
rmSync(folder, { recursive: true })
