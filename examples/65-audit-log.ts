/**
 * A log that cannot be quietly changed: lines in a file, a signed checkpoint kept elsewhere, and what an audit then says.
 *
 * Prints:
 *
 *     6 entries, sealed: 6, ok: true
 *     an entry was edited: edit
 *     the end was cut off: truncate
 *     entry 3 is in the log: true
 *     erased, ok: true
 */

// #region program
import { mkdtempSync, readFileSync, rmSync, writeFileSync } from 'node:fs'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { defineTaskClass, governed, governor } from '@skein/governance'
import { generateKey } from '@skein/governance/approvals'
import { leafHash, parseCheckpoint, verifyInclusion } from '@skein/governance/audit'
import { fileLog, filePayloads, verifyLogFolder } from '@skein/governance/file-log'
import * as bank from './wire-bank.ts'

const folder = mkdtempSync(join(tmpdir(), 'skein-audit-'))
const dir = join(folder, 'log')
const { publicJwk, privateJwk } = await generateKey()
const log = await fileLog({ dir, origin: 'bank.example/audit', key: privateJwk })
const payloads = filePayloads({ dir: join(folder, 'payloads') })

const ledger = governed(bank.ledgerSnapshot, { risk: 'read_only' })
const task = defineTaskClass({ name: 'balance', tools: [ledger], needs: [], verifiers: [] })
const gov = governor({ id: 'bank.example', audit: log, payloads })
const done = await gov.run(task, { identity: bank.identity, input: null }, async (run) => {
  const { result } = await run.call(ledger, {})
  return result
})
if (done.state !== 'deliver') throw new Error('not delivered')

// The checkpoint goes to the auditor. From now on no entry before it can change unnoticed.
const pinned = await log.seal()
const proof = await log.prove(3, log.size)
await log.close()

const entries = join(dir, 'entries.ndjson')
const original = readFileSync(entries, 'utf8')
const verify = () => verifyLogFolder(dir, { keys: [publicJwk], trusted: pinned })

const { size, sealed, ok } = await verify()
console.log(`${size} entries, sealed: ${sealed}, ok: ${ok}`)

writeFileSync(entries, original.replace('ledger_snapshot', 'ledger_snapshut'))
console.log(`an entry was edited: ${(await verify()).faults[0]?.kind}`)
writeFileSync(entries, original.split('\n').slice(0, 3).join('\n') + '\n')
console.log(`the end was cut off: ${(await verify()).faults[0]?.kind}`)
writeFileSync(entries, original)

// One line, a few hashes and the checkpoint are enough; no one needs the rest of the log.
const { root } = parseCheckpoint(pinned)!
const leaf = leafHash(original.split('\n')[3]!)
const hashes = proof.map((hash) => new Uint8Array(Buffer.from(hash, 'base64')))
const isIn = verifyInclusion({ leaf, index: 3, size, root, proof: hashes })
console.log(`entry 3 is in the log: ${isIn}`)

// The log holds hashes. What they were made of can be erased without breaking it.
await payloads.erase(done.evidence[0]!.hash)
console.log(`erased, ok: ${(await verify()).ok}`)
rmSync(folder, { recursive: true })
// #endregion program
