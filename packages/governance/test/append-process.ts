// Appends entries until it is killed, and tells which are acknowledged.
import { writeSync } from 'node:fs'
import { fileLog } from '../src/audit/file-log-node.ts'
import { entriesOf } from './sample-log.ts'

const [dir, from, key] = process.argv.slice(2) as [string, string, string]
const log = await fileLog({ dir, origin: 'kill', key: JSON.parse(key), sealEvery: 40 })
writeSync(1, `open ${log.size}\n`)
for (let number = Number(from); ; number++) {
  for (const entry of entriesOf(number)) {
    const index = await log.append(entry, { durable: entry.seq % 4 === 0, seal: entry.seq === 6 })
    // Synchronous, so that what was told was acknowledged, and nothing told is lost in a buffer.
    writeSync(1, `${index} ${number} ${entry.seq}\n`)
  }
}
